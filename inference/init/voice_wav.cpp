#include "inference/init/voice_wav.hpp"

#include "base/wav.hpp"
#include "inference/init/text_file.hpp"

#include <cmath>
#include <string>

namespace parley::inference::init {

namespace {

constexpr std::int64_t rate = 16000;

} // namespace

void write_voice_wav(const std::filesystem::path& file, std::int64_t samples, std::uint64_t seed) {
  constexpr double two_pi = 6.283185307179586, syllable = 0.23;
  const auto header = base::wav_header(rate, static_cast<std::uint32_t>(2 * samples));
  std::string out(header.data(), header.size());
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
    const auto number = static_cast<std::int16_t>(6000 * loud * loud * value);
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  write_text(file, out);
}

} // namespace parley::inference::init
