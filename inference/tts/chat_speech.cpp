#include "inference/tts/chat_speech.hpp"

#include <ATen/ATen.h>

#include <utility>

namespace parley::inference::speech {

chat_speech::chat_speech(const speech_models& models, std::shared_ptr<const voice> speaker, tts_form form,
                         tts_sampling sampling, std::unique_ptr<random_source> draws,
                         std::unique_ptr<random_source> noise)
    : models_(&models), form_(form), draws_(std::move(draws)), noise_(std::move(noise)),
      tokens_(*models.embeddings, *models.tokens, form, sampling), stream_(models.sound->start(std::move(speaker))) {}

void chat_speech::begin_group(const at::Tensor& condition, bool last) {
  std::vector<at::Tensor> rows{condition};
  if (last) rows.push_back(models_->embeddings->text_eos());
  rows.push_back(models_->embeddings->audio_bos());
  tokens_.begin(at::cat(rows, 0), form_ == tts_form::whole ? whole_limits : streamed_limits);
}

void chat_speech::absorb() {
  if (form_ == tts_form::whole) return;
  for (const auto all = tokens_.tokens(); absorbed_ < all.size(); ++absorbed_)
    if (auto call = windows_.push(all[absorbed_])) calls_.push_back(std::move(*call));
}

void chat_speech::finish() {
  absorb();
  if (form_ == tts_form::whole)
    for (auto& call : whole_windows(tokens_.tokens())) calls_.push_back(std::move(call));
  else if (auto call = windows_.finish())
    calls_.push_back(std::move(*call));
}

std::optional<token2wav::job> chat_speech::next_window() {
  if (calls_.empty()) return std::nullopt;
  current_ = std::move(calls_.front());
  calls_.pop_front();
  return token2wav::job{&stream_, current_.tokens, current_.last, noise_.get(), {}};
}

} // namespace parley::inference::speech
