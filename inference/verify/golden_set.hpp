#pragma once

#include "inference/formats/checkpoint.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/formats/safetensors.hpp"
#include "inference/text/tokenizer.hpp"

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace parley::inference::verify {

inline constexpr double thinker_tolerance = 1e-4; ///< for `golden_error`, in float32 (docs/model/thinker.md 8)

/// The files that a replay reads: the model's and the recordings. Everything is loaded on first use, which throws
/// std::runtime_error naming the file.
class golden_set {
public:
  /// `device`, `dtype`: where and in which format the model is to compute.
  golden_set(std::filesystem::path model, std::filesystem::path goldens, at::Device device = at::kCPU,
             at::ScalarType dtype = at::kFloat);

  const std::filesystem::path& model_directory() const { return model_; }
  const std::filesystem::path& directory() const { return goldens_; }

  at::Device device() const { return device_; }
  at::ScalarType dtype() const { return dtype_; }

  const checkpoint& weights();
  const model_config& config();
  const tokenizer& text();

  /// A part of the weights where and as they are to compute.
  inference::weights view(std::string prefix) { return weights().view(std::move(prefix), dtype_, device_); }

  /// `<stem>.json` and `<stem>.safetensors` of the goldens.
  const nlohmann::json& cases(const std::string& stem);
  const safetensors_file& tensors(const std::string& stem);

  /// Stems of the golden files that begin with `prefix`, sorted: "duplex_" → duplex_A_audio, ...
  std::vector<std::string> stems(std::string_view prefix) const;

  /// A clip reference [name, start, end] of the recorded inputs, end 0 = to the end; 16 kHz samples in [-1, 1].
  std::vector<float> clip(const nlohmann::json& reference);
  std::vector<float> clip(const std::string& name, std::int64_t start, std::int64_t end);
  bool has_clip(const std::string& name) { return clips().has(name); }

private:
  const safetensors_file& clips();

  std::filesystem::path model_;
  std::filesystem::path goldens_;
  at::Device device_;
  at::ScalarType dtype_;
  std::optional<checkpoint> weights_;
  std::optional<model_config> config_;
  std::optional<tokenizer> text_;
  std::map<std::string, nlohmann::json> cases_;
  std::map<std::string, safetensors_file> tensors_;
};

} // namespace parley::inference::verify
