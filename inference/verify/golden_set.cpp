#include "inference/verify/golden_set.hpp"

#include "inference/formats/json_file.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

namespace parley::inference::verify {

golden_set::golden_set(std::filesystem::path model, std::filesystem::path goldens, at::Device device,
                       at::ScalarType dtype)
    : model_(std::move(model)), goldens_(std::move(goldens)), device_(device), dtype_(dtype) {}

const checkpoint& golden_set::weights() {
  if (!weights_) weights_ = checkpoint::open(model_);
  return *weights_;
}

const model_config& golden_set::config() {
  if (!config_) config_ = model_config::open(model_);
  return *config_;
}

const tokenizer& golden_set::text() {
  if (!text_) text_ = tokenizer::open(model_);
  return *text_;
}

const nlohmann::json& golden_set::cases(const std::string& stem) {
  auto found = cases_.find(stem);
  if (found == cases_.end()) found = cases_.emplace(stem, read_json(goldens_ / (stem + ".json"))).first;
  return found->second;
}

const safetensors_file& golden_set::tensors(const std::string& stem) {
  auto found = tensors_.find(stem);
  if (found == tensors_.end())
    found = tensors_.emplace(stem, safetensors_file::open(goldens_ / (stem + ".safetensors"))).first;
  return found->second;
}

std::vector<std::string> golden_set::stems(std::string_view prefix) const {
  std::vector<std::string> result;
  for (const auto& entry : std::filesystem::directory_iterator(goldens_)) {
    auto stem = entry.path().stem().string();
    if (entry.path().extension() == ".json" && stem.starts_with(prefix)) result.push_back(stem);
  }
  std::sort(result.begin(), result.end());
  return result;
}

const safetensors_file& golden_set::clips() {
  return tensors(exists(goldens_ / "inputs.safetensors") ? "inputs" : "audio_inputs");
}

std::vector<float> golden_set::clip(const nlohmann::json& reference) {
  return clip(reference.at(0).get<std::string>(), reference.at(1).get<std::int64_t>(),
              reference.at(2).get<std::int64_t>());
}

std::vector<float> golden_set::clip(const std::string& name, std::int64_t start, std::int64_t end) {
  auto samples = clips().tensor(name);
  if (end == 0) end = samples.numel();
  auto cut = samples.slice(0, start, end).to(at::kFloat).div_(32768).contiguous();
  return {cut.const_data_ptr<float>(), cut.const_data_ptr<float>() + cut.numel()};
}

} // namespace parley::inference::verify
