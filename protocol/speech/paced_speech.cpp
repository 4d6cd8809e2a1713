#include "protocol/speech/paced_speech.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace parley::protocol::speech {
namespace {

constexpr std::size_t frames_between = 3;    ///< at most, from words to words: clients take 0.8 s for the end of a turn
constexpr std::size_t bytes_per_second = 18; ///< of text, while it is not known how long its sound will be
constexpr int longest_words_ms = 600;

/// `text` in pieces, each a word with the space before it.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const auto word = text.find_first_not_of(' ');
    const auto end = word == text.npos ? text.npos : text.find(' ', word);
    out.push_back(text.substr(0, end));
    text.remove_prefix(out.back().size());
  }
  return out;
}

/// `text` in at most `count` pieces of about the same size.
std::vector<std::string_view> cut_evenly(std::string_view text, std::size_t count) {
  std::vector<std::string_view> out;
  for (; !text.empty() && count > 0; --count) {
    const auto wanted = std::max<std::size_t>(1, (text.size() + count - 1) / count);
    auto piece = base::utf8::truncate(text, wanted);
    if (piece.empty()) piece = text.substr(0, std::max<std::size_t>(1, base::utf8::sequence_length(text)));
    out.push_back(count == 1 ? text : piece);
    text.remove_prefix(out.back().size());
  }
  return out;
}

} // namespace

paced_speech::paced_speech(sound_format format)
    : rate_(format.rate), frame_size_(static_cast<std::size_t>(rate_ * frame.count() / 1000)),
      from_model_(model_output_rate, rate_), encoder_({format.coding, model_output_rate}) {}

/// Gives every frame its share of the words, so that there is never a long time without any.
void paced_speech::spread(std::string_view words, std::size_t from, std::size_t samples) {
  const auto frames = std::max<std::size_t>(1, samples / frame_size_);
  const auto needed = (frames + frames_between - 1) / frames_between;
  auto pieces = words_of(words);
  if (pieces.size() < needed) pieces = cut_evenly(words, needed);
  const auto groups = std::min(pieces.size(), frames);
  for (std::size_t group = 0; group < groups; ++group) {
    mark one{from + group * frames / groups * frame_size_, {}};
    for (auto i = group * pieces.size() / groups; i < (group + 1) * pieces.size() / groups; ++i) one.words += pieces[i];
    marks_.push_back(std::move(one));
  }
}

void paced_speech::sound(std::span<const float> from_model, bool all_words) {
  std::vector<float> samples;
  from_model_.feed(from_model, samples);
  if (samples.empty()) return;
  const auto from = made();
  samples_.insert(samples_.end(), samples.begin(), samples.end());
  std::string_view now = waiting_words_;
  if (!all_words) {
    const auto room = samples.size() * bytes_per_second / static_cast<std::size_t>(rate_);
    std::size_t size = 0;
    for (const auto word : words_of(now)) {
      if (size > 0 && size + word.size() > room) break;
      size += word.size();
    }
    now = now.substr(0, size);
  }
  spread(now, from, samples.size());
  waiting_words_.erase(0, now.size());
}

void paced_speech::end() {
  std::vector<float> rest;
  from_model_.finish(rest);
  from_model_ = resampler(model_output_rate, rate_);
  samples_.insert(samples_.end(), rest.begin(), rest.end());
  if (samples_.empty() && waiting_words_.empty()) return;
  const auto frames = std::max<std::size_t>(1, (samples_.size() + frame_size_ - 1) / frame_size_);
  samples_.resize(frames * frame_size_);
  if (waiting_words_.empty()) return;
  std::string words;
  for (const auto& each : marks_) words += each.words;
  words += std::exchange(waiting_words_, {});
  marks_.clear();
  spread(words, sent_, samples_.size());
}

void paced_speech::cut() {
  waiting_words_.clear();
  samples_.clear();
  marks_.clear();
  from_model_ = resampler(model_output_rate, rate_);
}

std::optional<time_point> paced_speech::due() const {
  if (samples_.size() < frame_size_) return std::nullopt;
  return last_end_.value_or(time_point::min());
}

std::optional<paced_speech::piece> paced_speech::next(time_point now) {
  const auto when = due();
  if (!when || now < *when) return std::nullopt;
  piece out;
  // A late timer is made up for; a pause is not.
  out.plays_at = last_end_ && now - *last_end_ < frame ? *last_end_ : now;
  last_end_ = out.plays_at + frame;

  const auto end = samples_.begin() + static_cast<std::ptrdiff_t>(frame_size_);
  const std::vector<float> samples(samples_.begin(), end);
  samples_.erase(samples_.begin(), end);
  const auto began = std::exchange(sent_, sent_ + frame_size_);
  out.audio = encoder_.feed(samples);

  for (; !marks_.empty() && marks_.front().at < sent_; marks_.pop_front()) out.words += marks_.front().words;
  const auto until = marks_.empty() ? made() : marks_.front().at;
  const auto ms = static_cast<int>((until - began) * 1000 / static_cast<std::size_t>(rate_));
  out.words_ms = std::clamp(ms, static_cast<int>(frame.count()), longest_words_ms);
  return out;
}

} // namespace parley::protocol::speech
