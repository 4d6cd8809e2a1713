#include "inference/thinker.hpp"

#include "inference/decoding/answer_decoder.hpp"
#include "inference/decoding/unit_decoder.hpp"
#include "inference/llm/sampling.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

namespace parley::inference {

namespace {

/// Throws std::runtime_error if the model has no row for a token that sessions feed or look up. Tokens that are only
/// banned need none.
void check_tokens(const tokenizer& text, std::int64_t rows, const std::filesystem::path& directory) {
  const auto control = duplex::control_tokens::of(text);
  const auto sampled = llm::make_duplex_sampling_ids(text, {});
  auto named = chat::answer_ids::of(text).terminators;
  named.insert(named.end(), {control.unit_begin, control.unit_end, control.listen, control.speak, control.chunk_eos,
                             control.chunk_tts_eos, control.turn_eos, control.tts_bos, sampled.chunk_eos,
                             sampled.turn_eos, sampled.listen, text.eos()});
  for (const auto* name : {"<|im_start|>", "<|audio_start|>", "<|audio_end|>", "<image>", "</image>", "<slice>",
                           "</slice>", "<image_id>", "</image_id>"})
    named.push_back(text.id(name));
  for (const auto id : named)
    if (id >= rows)
      throw std::runtime_error(directory.string() + ": token " + std::string(text.bytes(id)) + " has the id " +
                               std::to_string(id) + ", and the model has only " + std::to_string(rows) + " rows");
}

} // namespace

thinker::thinker(const checkpoint& weights, model_config config, at::ScalarType dtype, at::Device device,
                 llm::quantization format)
    : config_(std::move(config)), text_(tokenizer::open(weights.directory())), mel_(config_.audio.mel_bins),
      llm_(config_.llm, weights.view("llm.", dtype, device), format) {
  check_tokens(text_, llm_.vocabulary(), weights.directory());
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
    chunks.push_back({sounds[i].cache, mels[i].mel, sounds[i].drop_front, sounds[i].drop_back});
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

namespace {

std::int64_t frames_of(std::span<const float> samples) {
  return (std::ssize(samples) + audio::mel_hop_samples - 1) / audio::mel_hop_samples;
}

} // namespace

thinker::clip_hearing::clip_hearing(const thinker& of, std::span<const std::span<const float>> clips, bool padded)
    : of_(of) {
  constexpr auto most = std::size_t{30} * audio::sample_rate;
  for (auto rest : clips)
    for (; !rest.empty(); rest = rest.subspan(std::min(most, rest.size()))) {
      pieces_.push_back(rest.first(std::min(most, rest.size())));
      if (padded) padded_to_ = std::max(padded_to_, frames_of(pieces_.back()));
    }
}

bool thinker::clip_hearing::advance() {
  if (rows_.size() == pieces_.size()) return true;
  const auto piece = pieces_[rows_.size()];
  const auto frames = frames_of(piece);
  if (!pass_) {
    const auto mel = of_.mel_.offline(piece).front();
    const auto padded = at::constant_pad_nd(mel, {0, 0, 0, std::max(padded_to_ - frames, std::int64_t{0})});
    pass_ = of_.encoder_->begin_clip({padded.to(of_.llm_.device(), of_.llm_.dtype()), frames});
  } else {
    auto pass = *pass_;
    if (of_.encoder_->next_layer(pass)) {
      rows_.push_back(of_.projector_->project(std::vector{pass.x}, std::vector{frames}).front());
      pass_.reset();
    } else {
      pass_ = std::move(pass);
    }
  }
  ++steps_;
  return rows_.size() == pieces_.size();
}

at::Tensor thinker::clip_hearing::take() const {
  if (rows_.empty())
    return at::empty({0, of_.config_.llm.hidden_size}, at::TensorOptions(of_.llm_.dtype()).device(of_.llm_.device()));
  return at::cat(rows_);
}

} // namespace parley::inference
