#include "inference/formats/safetensors.hpp"

#include "tests/support/temporary_folder.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <cstring>
#include <optional>

using namespace parley::inference;
using parley::tests::temporary_folder;

namespace {

std::string file_bytes(std::string header, std::string_view data = {}) {
  std::uint64_t size = header.size();
  std::string result(8, '\0');
  std::memcpy(result.data(), &size, 8);
  return result + header + std::string(data);
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& at) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + at + "}";
}

void refuses(const std::string& bytes, const std::string& reason) {
  temporary_folder folder;
  auto path = folder.write("x.safetensors", bytes);
  CHECK_THROWS_WITH(safetensors_file::open(path), Catch::Contains(path.string()) && Catch::Contains(reason));
}

} // namespace

TEST_CASE("every dtype of the format is read") {
  temporary_folder folder;
  struct known {
    const char* name;
    at::ScalarType type;
    int bytes;
  };
  auto row = GENERATE(values<known>({{"BOOL", at::kBool, 1},
                                     {"U8", at::kByte, 1},
                                     {"I8", at::kChar, 1},
                                     {"F8_E4M3", at::kFloat8_e4m3fn, 1},
                                     {"F8_E5M2", at::kFloat8_e5m2, 1},
                                     {"F8_E8M0", at::kFloat8_e8m0fnu, 1},
                                     {"I16", at::kShort, 2},
                                     {"U16", at::kUInt16, 2},
                                     {"F16", at::kHalf, 2},
                                     {"BF16", at::kBFloat16, 2},
                                     {"I32", at::kInt, 4},
                                     {"U32", at::kUInt32, 4},
                                     {"F32", at::kFloat, 4},
                                     {"I64", at::kLong, 8},
                                     {"U64", at::kUInt64, 8},
                                     {"F64", at::kDouble, 8},
                                     {"C64", at::kComplexFloat, 8}}));
  auto size = 2 * row.bytes;
  auto header = "{" + entry("t", row.name, "[2,1]", "[0," + std::to_string(size) + "]") + "}";
  auto path = folder.write("x.safetensors", file_bytes(header, std::string(static_cast<std::size_t>(size), '\1')));
  auto t = safetensors_file::open(path).tensor("t");
  CHECK(t.scalar_type() == row.type);
  CHECK(t.sizes() == at::IntArrayRef({2, 1}));
}

TEST_CASE("values, scalars, empty tensors and metadata") {
  temporary_folder folder;
  float values[] = {1.5F, -2.0F, 3.25F};
  std::string data(reinterpret_cast<const char*>(values), sizeof values);
  auto header = R"({"__metadata__":{"format":"pt"},)" + entry("b", "F32", "[2]", "[4,12]") + "," +
                entry("a", "F32", "[]", "[0,4]") + "," + entry("none", "F32", "[0,7]", "[12,12]") + "}";
  auto file = safetensors_file::open(folder.write("x.safetensors", file_bytes(header, data)));
  CHECK(file.names() == std::vector<std::string>{"a", "b", "none"});
  CHECK(file.tensor("a").item<float>() == 1.5F);
  CHECK(file.tensor("b")[1].item<float>() == 3.25F);
  CHECK(file.tensor("none").sizes() == at::IntArrayRef({0, 7}));
  CHECK(file.has("a"));
  CHECK_FALSE(file.has("__metadata__"));
  CHECK_THROWS_WITH(file.tensor("c"), Catch::Contains("x.safetensors") && Catch::Contains("no tensor c"));
}

TEST_CASE("a tensor outlives file object and folder, whatever its alignment") {
  auto pad = GENERATE(0, 1, 2, 3);
  std::optional<at::Tensor> kept;
  {
    temporary_folder folder;
    double value = 42.0;
    auto header = "{" + entry("t", "F64", "[1]", "[0,8]") + "}" + std::string(static_cast<std::size_t>(pad), ' ');
    std::string data(reinterpret_cast<const char*>(&value), 8);
    kept = safetensors_file::open(folder.write("x.safetensors", file_bytes(header, data))).tensor("t");
  }
  CHECK(kept->item<double>() == 42.0);
}

TEST_CASE("hostile files are refused by name and reason") {
  refuses("", "is empty");
  refuses("1234567", "shorter than its header");
  refuses(std::string(8, '\xff'), "header size");
  refuses(file_bytes("{}").substr(0, 9), "header size");
  refuses(file_bytes(""), "not a JSON object");
  refuses(file_bytes("{"), "not a JSON object");
  refuses(file_bytes("[]"), "not a JSON object");
  refuses(file_bytes("{} trailing"), "not a JSON object");
  refuses(file_bytes("\xff\xfe"), "not a JSON object");
  refuses(file_bytes(std::string(100000, '[')), "nested too deeply");
  refuses(file_bytes(R"({"t":)" + std::string(100000, '[') + "}"), "nested too deeply");
  refuses(file_bytes(R"({"t":7})"), "not an object");
  refuses(file_bytes(R"({"t":{}})"), "dtype is missing");
  refuses(file_bytes(R"({"t":{"dtype":"F32","shape":[1]}})"), "data_offsets is missing");
  auto one = [](const std::string& dtype, const std::string& shape, const std::string& at) {
    return file_bytes("{" + entry("t", dtype, shape, at) + "}", "12345678");
  };
  refuses(one("F33", "[1]", "[0,4]"), "unknown dtype F33");
  refuses(one("F32", "[2]", "[0,4]"), "do not fit");
  refuses(one("F32", "[3]", "[0,12]"), "outside the file");
  refuses(one("F32", "[1]", "[8,4]"), "outside the file");
  refuses(one("F32", "[1]", "[18446744073709551612,0]"), "outside the file");
  refuses(one("F32", "[-1]", "[0,4]"), "an extent is not an unsigned number");
  refuses(one("F32", "[1.0]", "[0,4]"), "an extent is not an unsigned number");
  refuses(one("F32", "[4611686018427387904,4]", "[0,4]"), "too large");
  refuses(one("F32", "[18446744073709551615]", "[0,4]"), "too large");
  refuses(one("F32", "7", "[0,4]"), "shape is not a list");
  refuses(one("F32", "[1]", "[0]"), "not a pair");
  refuses(one("F32", "[1]", "[0,-4]"), "an offset is not an unsigned number");
  refuses(
      file_bytes("{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[1]", "[2,6]") + "}", "12345678"),
      "overlap");
}

TEST_CASE("what is no file is refused") {
  temporary_folder folder;
  CHECK_THROWS_WITH(safetensors_file::open(folder.path() / "missing"), Catch::Contains("can't open"));
  CHECK_THROWS_WITH(safetensors_file::open(folder.path()), Catch::Contains("not a regular file"));
}
