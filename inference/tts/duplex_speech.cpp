#include "inference/tts/duplex_speech.hpp"

#include "inference/speech/pcm16.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace parley::inference::speech {
namespace {

constexpr std::size_t second = 24000;

} // namespace

duplex_speech::duplex_speech(const speech_models& models, std::shared_ptr<const voice> speaker, tts_sampling sampling,
                             std::shared_ptr<random_source> draws, std::shared_ptr<random_source> noise, quirks how)
    : models_(&models), voice_(std::move(speaker)), quirks_(how), draws_(std::move(draws)), noise_(std::move(noise)),
      tokens_(*models.embeddings, *models.tokens, tts_form::duplex, sampling), stream_(models.sound->start(voice_)) {}

void duplex_speech::begin_unit(at::Tensor condition, bool ends) {
  forget_unit();
  ends_ = ends;
  planned_ = false;
  limits_ = duplex_limits(tokens_.position() == 0, ends);
  tokens_.begin(std::move(condition), limits_);
}

std::optional<std::size_t> duplex_speech::unit_tokens() const {
  if (!choosing()) return tokens_.group().size();
  // The last step's token is never returned.
  return limits_.least >= limits_.most ? std::optional(static_cast<std::size_t>(limits_.most - 1)) : std::nullopt;
}

bool duplex_speech::will_sound() const {
  return ends_ || quirks_.missing_sound_is_silence ||
         windows_.waiting().size() + unit_tokens().value_or(0) >= smallest_window;
}

std::optional<token2wav::job> duplex_speech::next_window() {
  if (choosing()) return std::nullopt;
  if (!planned_) {
    calls_ = windows_.push(tokens_.group(), ends_);
    planned_ = true;
  }
  if (next_call_ == calls_.size()) return std::nullopt;
  const auto& call = calls_[next_call_];
  return token2wav::job{&stream_, call.tokens, call.last, noise_.get(), {}};
}

void duplex_speech::take_sound(at::Tensor samples) {
  ++next_call_;
  sound_.push_back(std::move(samples));
}

std::vector<float> duplex_speech::end_unit() {
  std::vector<float> result;
  for (const auto& piece : sound_) {
    const auto samples = piece.contiguous();
    for (const auto x : std::span(samples.const_data_ptr<float>(), static_cast<std::size_t>(samples.numel())))
      result.push_back(static_cast<float>(to_stream_pcm16(x)) / 32768.0F);
  }
  const bool nothing = sound_.empty();
  const bool first = !result.empty() && !std::exchange(turn_sounds_, true);
  if ((nothing && quirks_.missing_sound_is_silence) ||
      (!nothing && !ends_ && (first || quirks_.sound_is_padded_in_front)))
    result.insert(result.begin(), second - std::min(second, result.size()), 0.0F);
  forget_unit();
  if (ends_) {
    tokens_.reset();
    forget_sound();
  }
  return result;
}

void duplex_speech::restore(mark before) {
  forget_unit();
  tokens_ = std::move(before.tokens);
  windows_ = std::move(before.windows);
  stream_ = std::move(before.stream);
  turn_sounds_ = before.turn_sounds;
}

void duplex_speech::cut() {
  tokens_.stop();
  if (!quirks_.interruption_keeps_speech_model) tokens_.reset();
  forget_unit();
  forget_sound();
}

void duplex_speech::forget_unit() {
  calls_.clear();
  sound_.clear();
  next_call_ = 0;
  planned_ = true;
}

void duplex_speech::forget_sound() {
  turn_sounds_ = false;
  windows_.reset();
  stream_ = models_->sound->start(voice_);
}

} // namespace parley::inference::speech
