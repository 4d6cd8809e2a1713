#include "inference/formats/safetensors.hpp"

#include "inference/formats/json_file.hpp"
#include "inference/formats/mapped_file.hpp"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>

namespace parley::inference {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

namespace {

constexpr std::size_t max_header_bytes = 16'000'000; // the format allows 100 MB; a real header of 2,000 tensors has 0.3
constexpr std::size_t most_dimensions = 8;
constexpr int most_levels = 8; // the format has 3

struct entry {
  at::ScalarType dtype;
  std::vector<std::int64_t> shape;
  std::size_t begin; // offset in the file
  std::size_t end;
};

std::optional<at::ScalarType> dtype_of(std::string_view name) {
  static constexpr std::pair<std::string_view, at::ScalarType> types[] = {
      {"BOOL", at::kBool},
      {"U8", at::kByte},
      {"I8", at::kChar},
      {"I16", at::kShort},
      {"U16", at::kUInt16},
      {"I32", at::kInt},
      {"U32", at::kUInt32},
      {"I64", at::kLong},
      {"U64", at::kUInt64},
      {"F16", at::kHalf},
      {"BF16", at::kBFloat16},
      {"F32", at::kFloat},
      {"F64", at::kDouble},
      {"C64", at::kComplexFloat},
      {"F8_E4M3", at::kFloat8_e4m3fn},
      {"F8_E5M2", at::kFloat8_e5m2},
      {"F8_E8M0", at::kFloat8_e8m0fnu},
  };
  for (auto [known, type] : types)
    if (known == name) return type;
  return std::nullopt;
}

class refusal : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::size_t unsigned_number(const nlohmann::json& value, const char* what) {
  if (!value.is_number_unsigned()) throw refusal(std::string(what) + " is not an unsigned number");
  return value.get<std::size_t>();
}

entry parse_entry(const nlohmann::json& value, std::size_t data_begin, std::size_t data_size) {
  if (!value.is_object()) throw refusal("its entry is not an object");
  for (auto key : {"dtype", "shape", "data_offsets"})
    if (!value.contains(key)) throw refusal(std::string(key) + " is missing");
  entry result{};
  if (!value["dtype"].is_string()) throw refusal("dtype is not a string");
  auto dtype = dtype_of(value["dtype"].get_ref<const std::string&>());
  if (!dtype) throw refusal("unknown dtype " + value["dtype"].get<std::string>());
  result.dtype = *dtype;
  if (!value["shape"].is_array()) throw refusal("shape is not a list");
  if (value["shape"].size() > most_dimensions) throw refusal("shape has too many extents");
  std::size_t bytes = c10::elementSize(*dtype);
  for (const auto& extent : value["shape"]) {
    auto n = unsigned_number(extent, "an extent");
    if (n > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())) throw refusal("shape is too large");
    if (__builtin_mul_overflow(bytes, n, &bytes)) throw refusal("shape is too large");
    result.shape.push_back(static_cast<std::int64_t>(n));
  }
  const auto& offsets = value["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) throw refusal("data_offsets is not a pair");
  auto begin = unsigned_number(offsets[0], "an offset");
  auto end = unsigned_number(offsets[1], "an offset");
  if (begin > end || end > data_size) throw refusal("data_offsets lie outside the file");
  if (end - begin != bytes) throw refusal("data_offsets do not fit dtype and shape");
  result.begin = data_begin + begin;
  result.end = data_begin + end;
  return result;
}

} // namespace

struct safetensors_file::contents {
  explicit contents(const std::filesystem::path& p) : path(p), file(p) {}

  void read_header();

  std::filesystem::path path;
  mapped_file file;
  std::map<std::string, entry, std::less<>> entries;
  std::vector<std::string> names;
};

void safetensors_file::contents::read_header() {
  auto bytes = file.bytes();
  if (bytes.size() < 8) throw refusal("shorter than its header");
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > max_header_bytes || size > bytes.size() - 8) throw refusal("header size lies outside the file");
  auto* text = reinterpret_cast<const char*>(bytes.data()) + 8;
  if (nests_deeper({text, static_cast<std::size_t>(size)}, most_levels)) throw refusal("header is nested too deeply");
  auto header = nlohmann::json::parse(text, text + size, nullptr, false);
  if (header.is_discarded() || !header.is_object()) throw refusal("header is not a JSON object");
  auto data_begin = 8 + static_cast<std::size_t>(size);
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      entries.emplace(name, parse_entry(value, data_begin, bytes.size() - data_begin));
    } catch (const refusal& e) {
      throw refusal("tensor " + name + ": " + e.what());
    }
    names.push_back(name);
  }
  auto begin_of = [this](const std::string& name) { return std::pair(entries.at(name).begin, entries.at(name).end); };
  std::sort(names.begin(), names.end(), [&](auto& a, auto& b) { return begin_of(a) < begin_of(b); });
  for (std::size_t i = 1; i < names.size(); ++i)
    if (begin_of(names[i]).first < begin_of(names[i - 1]).second)
      throw refusal("tensors " + names[i - 1] + " and " + names[i] + " overlap");
}

safetensors_file::safetensors_file(std::shared_ptr<const contents> c) : contents_(std::move(c)) {}

safetensors_file safetensors_file::open(const std::filesystem::path& path) {
  auto result = std::make_shared<contents>(path);
  try {
    result->read_header();
  } catch (const refusal& e) {
    throw std::runtime_error(path.string() + ": " + e.what());
  }
  return safetensors_file(std::move(result));
}

const std::filesystem::path& safetensors_file::path() const {
  return contents_->path;
}

bool safetensors_file::has(std::string_view name) const {
  return contents_->entries.contains(name);
}

const std::vector<std::string>& safetensors_file::names() const {
  return contents_->names;
}

at::Tensor safetensors_file::tensor(std::string_view name) const {
  auto found = contents_->entries.find(name);
  if (found == contents_->entries.end())
    throw std::runtime_error(contents_->path.string() + ": no tensor " + std::string(name));
  const auto& [dtype, shape, begin, end] = found->second;
  auto options = at::TensorOptions().dtype(dtype);
  auto* data = const_cast<std::byte*>(contents_->file.bytes().data() + begin);
  // The format does not guarantee alignment, but kernels require it.
  if (reinterpret_cast<std::uintptr_t>(data) % c10::elementSize(dtype) != 0 || begin == end) {
    auto copy = at::empty(shape, options);
    if (begin != end) std::memcpy(copy.data_ptr(), data, end - begin);
    return copy;
  }
  return at::from_blob(
      data, shape, [keep = contents_](void*) {}, options);
}

} // namespace parley::inference
