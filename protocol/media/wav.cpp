#include "protocol/media/wav.hpp"

#include "protocol/media/resampler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace parley::protocol {
namespace {

/// The mean of the channels.
float frame_at(const base::wav_view& sound, std::size_t frame) {
  const auto channels = sound.format.channels;
  if (channels == 1) return sound.sample(frame, 0);
  double sum = 0;
  for (std::size_t c = 0; c < channels; ++c) sum += sound.sample(frame, c);
  return static_cast<float>(sum / static_cast<double>(channels));
}

std::string seconds_text(double seconds) {
  auto text = std::to_string(seconds);
  return text.substr(0, text.size() - 3) + " s";
}

} // namespace

std::string outside_seconds(double seconds, const wav_options& wanted) {
  return seconds_text(seconds) + " of sound, outside " + seconds_text(wanted.min_seconds) + ".." +
         seconds_text(wanted.max_seconds);
}

std::optional<double> wav_seconds(std::string_view head, std::size_t file_bytes) {
  std::string problem;
  const auto found = base::view_wav(head, problem);
  if (!found) return std::nullopt;
  const auto left = file_bytes - std::min(file_bytes, found->data_at);
  // Whether other chunks follow a chunk of no length, only the whole file shows.
  const bool unknown = found->data_bytes == 0 && head.size() < file_bytes;
  const auto bytes = unknown ? left : std::min(found->data_bytes, left);
  const std::size_t frames = bytes / found->format.frame_bytes();
  return static_cast<double>(frames) / found->format.rate;
}

std::optional<std::string> judge_seconds(double seconds, const wav_options& wanted) {
  if (seconds > 0 && seconds >= wanted.min_seconds && seconds <= wanted.max_seconds) return std::nullopt;
  return outside_seconds(seconds, wanted);
}

tl::expected<std::vector<float>, std::string> read_wav(std::string_view bytes, const wav_options& wanted) {
  std::string problem;
  const auto found = base::view_wav(bytes, problem);
  if (!found) return tl::unexpected(std::move(problem));
  const auto frames = found->frames();
  const auto seconds = static_cast<double>(frames) / found->format.rate;
  if (auto why = judge_seconds(seconds, wanted)) return tl::unexpected(*std::move(why));

  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(seconds * wanted.rate) + 1);
  resampler rates(found->format.rate, wanted.rate);
  std::array<float, 4096> block;
  for (std::size_t done = 0; done < frames;) {
    auto part = std::min(block.size(), frames - done);
    for (std::size_t i = 0; i < part; ++i) block[i] = frame_at(*found, done + i);
    if (auto bad = std::find_if_not(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(part),
                                    [](float x) { return std::isfinite(x); });
        bad != block.begin() + static_cast<std::ptrdiff_t>(part))
      return tl::unexpected("WAV: sample " + std::to_string(done + static_cast<std::size_t>(bad - block.begin())) +
                            " is not finite");
    // Clamped before resampling, because huge samples would turn the resampler's sums into NaN.
    for (auto& x : std::span(block).first(part)) x = std::clamp(x, -1.0f, 1.0f);
    rates.feed(std::span(block).first(part), out);
    done += part;
  }
  rates.finish(out);
  for (auto& x : out) x = std::clamp(x, -1.0f, 1.0f);
  return out;
}

std::string write_wav(std::span<const float> samples, std::uint32_t rate) {
  const auto size = samples.size() * sizeof(std::int16_t);
  const auto header = base::wav_header(rate, static_cast<std::uint32_t>(size));
  std::string out;
  out.reserve(header.size() + size);
  out.append(header.data(), header.size());
  for (const auto x : samples) {
    const auto scaled = std::isnan(x) ? 0.0f : std::clamp(x, -1.0f, 1.0f) * 32767.0f;
    const auto number = static_cast<std::int16_t>(std::lround(scaled));
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return out;
}

} // namespace parley::protocol
