#include "inference/formats/checkpoint.hpp"

#include "tests/support/temporary_folder.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cstring>

using namespace parley::inference;
using parley::tests::temporary_folder;

namespace {

std::string one_float(const std::string& name, float value) {
  auto header = nlohmann::json{{name, {{"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {0, 4}}}}}.dump();
  header.resize((header.size() + 7) / 8 * 8, ' '); // padded as writers do it, to align the data
  std::uint64_t size = header.size();
  std::string result(8, '\0');
  std::memcpy(result.data(), &size, 8);
  result += header;
  result.append(reinterpret_cast<const char*>(&value), 4);
  return result;
}

void write_index(const temporary_folder& folder, const nlohmann::json& map) {
  folder.write("model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
}

} // namespace

TEST_CASE("the tiny checkpoint opens; views add their prefix") {
  auto all = checkpoint::open("tests/data/checkpoints/tiny");
  CHECK(all.has("llm.lm_head.weight"));
  CHECK(all.stored("llm.lm_head.weight").scalar_type() == at::kBFloat16);
  auto audio = all.view("apm.");
  auto direct = all.tensor("apm.conv1.weight", at::kFloat);
  CHECK(at::equal(audio.tensor("conv1.weight"), direct));
  CHECK(at::equal(audio.sub("layers.0.").tensor("fc1.bias"), all.tensor("apm.layers.0.fc1.bias", at::kFloat)));
  CHECK_FALSE(audio.has("layers.0.self_attn.k_proj.bias"));
  CHECK(all.names("audio_projection_layer.").size() == 4);
}

TEST_CASE("a missing or misshapen tensor is named with its folder") {
  auto w = checkpoint::open("tests/data/checkpoints/tiny").view("apm.");
  CHECK_THROWS_WITH(w.tensor("nothing"), Catch::Contains("apm.nothing") && Catch::Contains("checkpoints/tiny"));
  CHECK_THROWS_WITH(w.tensor("conv1.bias", {1, 2}), Catch::Contains("apm.conv1.bias") && Catch::Contains("shape"));
  CHECK_NOTHROW(w.tensor("conv1.weight", {-1, -1, 3}));
}

TEST_CASE("no conversion, no copy") {
  temporary_folder folder;
  folder.write("model.safetensors", one_float("x", 7));
  auto all = checkpoint::open(folder.path());
  CHECK(all.tensor("x", at::kFloat).data_ptr() == all.tensor("x", at::kFloat).data_ptr());
  CHECK(all.tensor("x", at::kDouble).item<double>() == 7);
}

TEST_CASE("shards are joined by their index") {
  temporary_folder folder;
  folder.write("model-00001-of-00002.safetensors", one_float("a", 1));
  folder.write("model-00002-of-00002.safetensors", one_float("b", 2));
  write_index(folder, {{"a", "model-00001-of-00002.safetensors"}, {"b", "model-00002-of-00002.safetensors"}});
  auto all = checkpoint::open(folder.path());
  CHECK(all.names() == std::vector<std::string>{"a", "b"});
  CHECK(all.stored("b").item<float>() == 2);
}

TEST_CASE("a lying index is refused") {
  temporary_folder folder;
  folder.write("one.safetensors", one_float("a", 1));
  auto refuses = [&](const std::string& reason) {
    CHECK_THROWS_WITH(checkpoint::open(folder.path()), Catch::Contains(reason));
  };
  write_index(folder, {{"b", "one.safetensors"}});
  refuses("tensor b is not in one.safetensors");
  write_index(folder, {{"a", "../one.safetensors"}});
  refuses("not a file of the folder");
  write_index(folder, {{"a", "/etc/passwd"}});
  refuses("not a file of the folder");
  write_index(folder, {{"a", 7}});
  refuses("not a string");
  write_index(folder, 7);
  refuses("no weight_map");
  write_index(folder, {{"a", "two.safetensors"}});
  refuses("two.safetensors");
  folder.write("model.safetensors.index.json", "{");
  refuses("model.safetensors.index.json");
}

TEST_CASE("a folder without weights is refused") {
  temporary_folder folder;
  CHECK_THROWS_WITH(checkpoint::open(folder.path()), Catch::Contains("model.safetensors"));
}
