#include "client/voice_material.hpp"

#include "protocol/media/base64.hpp"
#include "protocol/media/sound_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace parley::client {
namespace {

constexpr std::size_t rate = 24'000; ///< Hz, of PCM16
constexpr std::size_t piece_samples = rate / pieces_per_unit;
constexpr double longest_recording = 600;

voice_material::frame shared(std::string text) {
  return text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text));
}

std::string base64_of(std::span<const float> samples) {
  std::vector<std::int16_t> words;
  words.reserve(samples.size());
  for (const float sample : samples)
    words.push_back(static_cast<std::int16_t>(std::lround(std::clamp(sample, -1.0f, 1.0f) * 32'767)));
  std::string out;
  protocol::base64::append(std::as_bytes(std::span(words)), out);
  return out;
}

} // namespace

tl::expected<voice_material, std::string> voice_material::make(std::span<const std::string> wavs,
                                                               const voice_wire& wire) {
  voice_material made;
  made.wire_ = &wire;
  std::vector<float> spoken;
  for (const auto& bytes : wavs) {
    auto samples = protocol::read_sound(bytes, {.rate = rate, .max_seconds = longest_recording});
    if (!samples) return tl::unexpected(samples.error());
    if (samples->empty()) return tl::unexpected(std::string("it holds no sound"));
    const auto units = (samples->size() + rate - 1) / rate;
    samples->resize(units * rate);
    spoken.insert(spoken.end(), samples->begin(), samples->end());
    made.script_.recordings.push_back(units);
  }
  spoken.resize(spoken.size() + rate); // one unit of silence
  for (std::size_t at = 0; at < spoken.size(); at += piece_samples)
    made.pieces_.push_back(shared(wire.append(base64_of(std::span(spoken).subspan(at, piece_samples)))));
  made.begin_ = shared(wire.begin());
  made.probe_ = shared(wire.probe());
  made.close_ = shared(wire.close());
  return made;
}

} // namespace parley::client
