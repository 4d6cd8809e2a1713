#include "inference/vocoder/resample.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

namespace parley::inference::speech {
namespace {

constexpr double zero_crossings = 6, rolloff = 0.99;

} // namespace

at::Tensor resample(const at::Tensor& samples, int from, int to) {
  if (from == to) return samples;
  const auto common = std::gcd(from, to);
  const std::int64_t o = from / common, n = to / common;
  const auto base = rolloff * static_cast<double>(std::min(o, n));
  const auto width = static_cast<std::int64_t>(std::ceil(zero_crossings * static_cast<double>(o) / base));
  const auto taps = 2 * width + o;

  auto kernel = at::empty({n, 1, taps}, at::kFloat);
  auto* out = kernel.mutable_data_ptr<float>();
  for (std::int64_t phase = 0; phase < n; ++phase) {
    const double shift = -static_cast<float>(phase) / static_cast<float>(n); // float32, as in torchaudio
    for (std::int64_t tap = -width; tap < width + o; ++tap) {
      const auto t = std::clamp((shift + static_cast<double>(tap) / static_cast<double>(o)) * base, -zero_crossings,
                                zero_crossings);
      const auto angle = std::numbers::pi * t;
      const auto window = std::cos(angle / (2 * zero_crossings));
      const auto sinc = angle == 0 ? 1.0 : std::sin(angle) / angle;
      *out++ = static_cast<float>(sinc * window * window * base / static_cast<double>(o));
    }
  }
  const auto length = samples.size(-1);
  const auto wanted = (n * length + o - 1) / o;
  const auto padded = at::constant_pad_nd(samples.reshape({-1, 1, length}), {width, width + o});
  const auto phases = at::conv1d(padded, kernel.to(samples.device()), {}, at::IntArrayRef(o));
  auto shape = samples.sizes().vec();
  shape.back() = wanted;
  return phases.transpose(1, 2).reshape({phases.size(0), -1}).narrow(1, 0, wanted).reshape(shape);
}

} // namespace parley::inference::speech
