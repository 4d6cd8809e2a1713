#include "inference/chat/prompt.hpp"

#include <ATen/ATen.h>

#include <stdexcept>

namespace parley::inference::chat {

std::int64_t prompt_ids::audio_rows() const {
  auto rows = std::int64_t{0};
  for (const auto& b : audio) rows += b.end - b.begin;
  return rows;
}

std::string audio_placeholder(std::size_t samples, int pool_step, bool by_seconds) {
  constexpr auto frames_per_second = std::int64_t{audio::sample_rate / audio::mel_hop_samples};
  auto frames = static_cast<std::int64_t>((samples + audio::mel_hop_samples - 1) / audio::mel_hop_samples);
  auto left = audio::audio_tokens(frames, pool_step);
  auto group = by_seconds ? audio::audio_tokens(frames_per_second, pool_step) : left;
  std::string text;
  do {
    auto here = std::min(group, left);
    text += "<|audio_start|>";
    for (auto i = std::int64_t{0}; i < here; ++i) text += "<unk>";
    text += "<|audio_end|>";
    left -= here;
  } while (left > 0);
  return text;
}

prompt_ids encode_prompt(const tokenizer& tokens, const rendered_text& text, std::span<const std::string> audio,
                         bool quote_clients) {
  rendered_text whole;
  auto done = std::size_t{0};
  for (const auto& a : text.attachments) {
    if (a.kind != medium::audio) throw std::runtime_error("this build does not see");
    whole.add(text, done, a.begin);
    whole.add(audio[a.number]);
    done = a.end;
  }
  whole.add(text, done, text.text.size());

  prompt_ids result;
  if (quote_clients)
    result.ids = tokens.encode(whole.text, whole.quoted);
  else
    result.ids = tokens.encode(whole.text);
  std::erase(result.ids, tokens.id("<|listen|>"));
  auto begin = tokens.id("<|audio_start|>"), end = tokens.id("<|audio_end|>");
  for (auto i = std::int64_t{0}; i < std::ssize(result.ids); ++i) {
    auto id = result.ids[static_cast<std::size_t>(i)];
    if (id == begin)
      result.audio.push_back({i + 1, i + 1});
    else if (id == end && !result.audio.empty())
      result.audio.back().end = i;
  }
  return result;
}

at::Tensor embed_prompt(const llm::qwen3& model, const prompt_ids& prompt, const at::Tensor& sound) {
  auto rows = model.embed(prompt.ids);
  auto used = std::int64_t{0};
  for (const auto& b : prompt.audio) {
    auto count = b.end - b.begin;
    if (used + count > sound.size(0)) throw std::runtime_error("the sound gives fewer rows than its placeholders");
    rows.narrow(0, b.begin, count).copy_(sound.narrow(0, used, count));
    used += count;
  }
  return rows;
}

} // namespace parley::inference::chat
