#include "inference/talker.hpp"

#include "inference/logger.hpp"

#include <ATen/ATen.h>

namespace parley::inference {

namespace {

/// The seed of the noise that all streams share. All engines have the same: a conversation that moves keeps its sound.
constexpr std::uint64_t noise_seed = 1;

} // namespace

talker::talker(const checkpoint& weights, const model_config& config, const quirks& how, at::ScalarType dtype,
               at::Device device, config::speech_dtype networks)
    : models_(speech::speech_models::load(weights, noise_seed, how, device, networks)),
      condition_(config.tts, weights.view("tts.", dtype, device)), normalize_(config.tts.normalize_projected_hidden) {}

std::shared_ptr<const talker> talker::open(const checkpoint& weights, const model_config& config, const quirks& how,
                                           at::ScalarType dtype, at::Device device, config::speech_dtype networks) {
  if (!config.has_tts) return nullptr;
  if (const auto missing = speech::speech_models::missing(weights)) {
    log_warning("engine: no voice, sessions are answered by text: " + *missing);
    return nullptr;
  }
  try {
    return std::make_shared<const talker>(weights, config, how, dtype, device, networks);
  } catch (const speech::unknown_operator& problem) {
    log_warning(std::string("engine: no voice, sessions are answered by text: ") + problem.what());
    return nullptr;
  }
}

at::Tensor talker::unit(std::span<const token_id> ids, std::span<const at::Tensor> hidden) const {
  return condition_.duplex(ids, hidden.empty() ? at::Tensor() : at::cat(at::TensorList(hidden.data(), hidden.size())))
      .to(at::kFloat);
}

at::Tensor talker::words(std::span<const token_id> ids, std::span<const at::Tensor> hidden) const {
  return condition_.rows(ids, at::cat(at::TensorList(hidden.data(), hidden.size())), normalize_).to(at::kFloat);
}

} // namespace parley::inference
