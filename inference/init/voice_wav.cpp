#include "inference/init/voice_wav.hpp"

#include "inference/init/text_file.hpp"

#include <cmath>
#include <string>

namespace parley::inference::init {

namespace {

constexpr std::int64_t rate = 16000;

template<class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

} // namespace

void write_voice_wav(const std::filesystem::path& file, std::int64_t samples, std::uint64_t seed) {
  constexpr double two_pi = 6.283185307179586, syllable = 0.23;
  const auto size = static_cast<std::uint32_t>(2 * samples);
  std::string out = "RIFF";
  append(out, 36 + size);
  out += "WAVEfmt ";
  append(out, std::uint32_t{16});
  append(out, std::uint16_t{1}); // PCM
  append(out, std::uint16_t{1}); // channel
  append(out, static_cast<std::uint32_t>(rate));
  append(out, static_cast<std::uint32_t>(2 * rate));
  append(out, std::uint16_t{2});
  append(out, std::uint16_t{16});
  out += "data";
  append(out, size);
  double phase = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto seconds = static_cast<double>(i) / rate, within = std::fmod(seconds, syllable) / syllable;
    const auto vowel = static_cast<double>((static_cast<std::uint64_t>(seconds / syllable) * 7 + seed) % 5);
    phase += (110 + 30 * std::sin(seconds) + 5 * static_cast<double>(seed % 8)) / rate;
    double value = 0;
    for (int harmonic = 1; harmonic <= 12; ++harmonic) {
      const auto formant = 2.0 + vowel;
      value += std::sin(two_pi * harmonic * phase) / (1 + (harmonic - formant) * (harmonic - formant));
    }
    const auto loud = std::sin(two_pi / 2 * within);
    append(out, static_cast<std::int16_t>(6000 * loud * loud * value));
  }
  write_text(file, out);
}

} // namespace parley::inference::init
