#include "inference/vocoder/noise.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

namespace parley::inference::speech {

at::Tensor gaussian_noise(random_source& chance, std::int64_t rows, std::int64_t columns) {
  auto result = at::empty({1, rows, columns}, at::kFloat);
  auto* out = result.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < result.numel(); i += 2) { // Box-Muller gives two at a time
    const auto radius = std::sqrt(-2 * std::log(1 - chance.next()));
    const auto angle = 2 * std::numbers::pi * chance.next();
    out[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < result.numel()) out[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return result;
}

noise_tables noise_tables::draw(std::uint64_t seed, std::int64_t bins, std::int64_t harmonics) {
  constexpr std::int64_t columns = 2000, rows = 30 * 24000;
  random_stream chance(seed, substream::noise);
  noise_tables made;
  made.flow = gaussian_noise(chance, bins, columns).squeeze(0);
  made.excitation = at::empty({rows, harmonics}, at::kFloat);
  auto* out = made.excitation.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < made.excitation.numel(); ++i)
    out[i] = static_cast<float>(chance.bits() >> 40) * 0x1.0p-24F;
  return made;
}

} // namespace parley::inference::speech
