#include "inference/formats/wav_file.hpp"

#include "base/wav.hpp"
#include "inference/formats/file_problem.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace parley::inference::speech {

namespace {

constexpr std::size_t longest_seconds = 600; ///< far more than a voice needs

} // namespace

wav_sound read_wav_file(const std::filesystem::path& file) {
  const auto fail = [&](const std::string& problem) { throw std::runtime_error(file.string() + ": " + problem); };
  const auto bytes = read_whole_file(file, largest_text);
  std::string problem;
  const auto found = base::view_wav(bytes, problem);
  if (!found) fail(problem);
  const auto frames = found->frames();
  if (frames == 0) fail("WAV: no samples");
  if (frames / found->format.rate >= longest_seconds)
    fail("WAV: lasts longer than " + std::to_string(longest_seconds) + " s");
  const auto channels = found->format.channels;
  wav_sound sound{at::empty({static_cast<std::int64_t>(channels), static_cast<std::int64_t>(frames)}, at::kFloat),
                  static_cast<int>(found->format.rate)};
  auto* out = sound.samples.mutable_data_ptr<float>();
  for (std::size_t i = 0; i < frames; ++i)
    for (std::size_t c = 0; c < channels; ++c) {
      const auto x = found->sample(i, c);
      if (!std::isfinite(x)) fail("WAV: sample " + std::to_string(i) + " is not finite");
      out[c * frames + i] = x;
    }
  return sound;
}

} // namespace parley::inference::speech
