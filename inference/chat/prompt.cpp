#include "inference/chat/prompt.hpp"

#include <ATen/ATen.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace parley::inference::chat {

namespace {

std::int64_t rows_in(const std::vector<bound>& bounds) {
  auto rows = std::int64_t{0};
  for (const auto& b : bounds) rows += b.end - b.begin;
  return rows;
}

std::int64_t frames_of(std::size_t samples) {
  return static_cast<std::int64_t>((samples + audio::mel_hop_samples - 1) / audio::mel_hop_samples);
}

/// The ranges between pairs of marks.
std::vector<bound> find_bounds(std::span<const token_id> ids, std::span<const std::pair<token_id, token_id>> marks) {
  std::vector<bound> found;
  for (auto i = std::int64_t{0}; i < std::ssize(ids); ++i) {
    auto id = ids[static_cast<std::size_t>(i)];
    for (const auto& [begin, end] : marks) {
      if (id == begin) found.push_back({i + 1, i + 1});
      if (id == end && !found.empty()) found.back().end = i;
    }
  }
  return found;
}

void deal_out(const at::Tensor& rows, std::span<const bound> bounds, const at::Tensor& media, const char* complaint) {
  auto used = std::int64_t{0};
  for (const auto& b : bounds) {
    auto count = b.end - b.begin;
    if (!media.defined() || used + count > media.size(0)) throw std::runtime_error(complaint);
    rows.narrow(0, b.begin, count).copy_(media.narrow(0, used, count));
    used += count;
  }
}

} // namespace

std::int64_t prompt_ids::audio_rows() const {
  return rows_in(audio);
}

std::int64_t prompt_ids::image_rows() const {
  return rows_in(image);
}

std::string audio_placeholder(std::int64_t rows) {
  std::string text = "<|audio_start|>";
  for (auto i = std::int64_t{0}; i < rows; ++i) text += "<unk>";
  return text += "<|audio_end|>";
}

std::int64_t heard_rows(std::size_t samples, int pool_step) {
  constexpr auto piece = std::size_t{30} * audio::sample_rate;
  return static_cast<std::int64_t>(samples / piece) * audio::audio_tokens(frames_of(piece), pool_step) +
         audio::audio_tokens(frames_of(samples % piece), pool_step);
}

std::string audio_placeholder(std::size_t samples, int pool_step, bool by_seconds) {
  constexpr auto frames_per_second = std::int64_t{audio::sample_rate / audio::mel_hop_samples};
  auto left = audio::audio_tokens(frames_of(samples), pool_step);
  auto group = by_seconds ? audio::audio_tokens(frames_per_second, pool_step) : left;
  std::string text;
  do {
    auto here = std::min(group, left);
    text += audio_placeholder(here);
    left -= here;
  } while (left > 0);
  return text;
}

prompt_ids encode_prompt(const tokenizer& tokens, const rendered_text& text, const placeholders& media,
                         bool quote_clients, std::size_t most) {
  rendered_text whole;
  auto done = std::size_t{0};
  for (const auto& a : text.attachments) {
    whole.add(text, done, a.begin);
    whole.add((a.kind == medium::audio ? media.audio : media.image).at(a.number));
    done = a.end;
  }
  whole.add(text, done, text.text.size());

  prompt_ids result;
  if (!quote_clients) whole.quoted.clear();
  result.ids = tokens.encode(whole.text, whole.quoted, most);
  std::erase(result.ids, tokens.id("<|listen|>"));
  auto pair = [&](const char* begin, const char* end) { return std::pair(tokens.id(begin), tokens.id(end)); };
  result.audio = find_bounds(result.ids, std::array{pair("<|audio_start|>", "<|audio_end|>")});
  result.image = find_bounds(result.ids, std::array{pair("<image>", "</image>"), pair("<slice>", "</slice>")});
  return result;
}

at::Tensor embed_prompt(const llm::qwen3& model, const prompt_ids& prompt, const at::Tensor& sound,
                        const at::Tensor& sight) {
  auto rows = model.embed(prompt.ids);
  deal_out(rows, prompt.image, sight, "the pictures give fewer rows than their placeholders");
  deal_out(rows, prompt.audio, sound, "the sound gives fewer rows than its placeholders");
  return rows;
}

} // namespace parley::inference::chat
