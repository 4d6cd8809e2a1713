#include "inference/thinker.hpp"

#include <ATen/ATen.h>

namespace parley::inference {

thinker::thinker(const checkpoint& weights, model_config config, at::ScalarType dtype, at::Device device,
                 llm::quantization format)
    : config_(std::move(config)), text_(tokenizer::open(weights.directory())), mel_(config_.audio.mel_bins),
      llm_(config_.llm, weights.view("llm.", dtype, device), format) {
  if (config_.has_audio) {
    encoder_.emplace(config_.audio, weights.view("apm.", dtype, device));
    projector_.emplace(config_.audio.pool_step, weights.view("audio_projection_layer.", dtype, device));
  }
  if (config_.has_vision)
    sight_.emplace(config_.vision, config_.llm.hidden_size, weights.view("vpm.", dtype, device),
                   weights.view("resampler.", dtype, device));
}

std::vector<at::Tensor> thinker::hear(std::span<const fresh_sound> sounds) const {
  std::vector<audio::mel_extractor::stream_input> inputs;
  for (const auto& s : sounds) inputs.push_back({s.stream, s.chunk});
  auto mels = mel_.stream(inputs);
  std::vector<audio::stream_chunk> chunks;
  std::vector<std::int64_t> frames;
  for (auto i = std::size_t{0}; i < sounds.size(); ++i) {
    frames.push_back(mels[i].mel.size(0));
    chunks.push_back(
        {sounds[i].cache, mels[i].mel.to(llm_.device(), llm_.dtype()), sounds[i].drop_front, sounds[i].drop_back});
  }
  return projector_->project(encoder_->stream(chunks), frames);
}

at::Tensor thinker::hear_clips(std::span<const std::span<const float>> clips) const {
  std::vector<at::Tensor> mels;
  auto longest = std::int64_t{0};
  for (auto& clip : mel_.offline(clips)) {
    for (auto& piece : clip) {
      longest = std::max(longest, piece.size(0));
      mels.push_back(std::move(piece));
    }
  }
  if (mels.empty())
    return at::empty({0, config_.llm.hidden_size}, at::TensorOptions(llm_.dtype()).device(llm_.device()));
  std::vector<audio::clip_piece> pieces;
  std::vector<std::int64_t> frames;
  for (const auto& mel : mels) {
    frames.push_back(mel.size(0));
    auto padded = at::constant_pad_nd(mel, {0, 0, 0, longest - mel.size(0)});
    pieces.push_back({padded.to(llm_.device(), llm_.dtype()), static_cast<int>(mel.size(0))});
  }
  return at::cat(projector_->project(encoder_->offline(pieces), frames));
}

} // namespace parley::inference
