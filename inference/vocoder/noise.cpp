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

void draw_pairs(random_source& chance, std::span<float> pairs) {
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    pairs[i] = static_cast<float>(1 - chance.next());
    pairs[i + 1] = static_cast<float>(chance.next());
  }
}

at::Tensor gaussian_of(const at::Tensor& pairs) {
  const auto radius = at::sqrt(at::log(pairs.select(1, 0)).mul_(-2));
  const auto angle = pairs.select(1, 1) * (2 * std::numbers::pi);
  return at::stack({at::cos(angle).mul_(radius), at::sin(angle).mul_(radius)}, 1).flatten();
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
