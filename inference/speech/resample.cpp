#include "inference/speech/resample.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

namespace parley::inference::speech {
namespace {

constexpr double zero_crossings = 6, rolloff = 0.99;
constexpr std::int64_t largest_kernel = 1 << 21; ///< numbers; those of usual rates have a tenth

/// For rates with a small common divisor, whose kernel would have a row for nearly each output of a second. Only the taps
/// near an output weigh anything.
template<class Weight>
at::Tensor sample_by_sample(const at::Tensor& samples, std::int64_t o, std::int64_t n, std::int64_t width,
                            std::int64_t wanted, const Weight& weight) {
  const auto length = samples.size(-1);
  const auto input = samples.to(at::kCPU, at::kFloat).reshape({-1, length}).contiguous();
  auto output = at::empty({input.size(0), wanted}, at::kFloat);
  for (std::int64_t row = 0; row < input.size(0); ++row) {
    const auto* in = input.const_data_ptr<float>() + row * length;
    auto* out = output.mutable_data_ptr<float>() + row * wanted;
    for (std::int64_t i = 0; i < wanted; ++i) {
      const auto block = i / n, phase = i % n, centre = phase * o / n;
      auto sum = 0.0;
      for (auto tap = std::max(centre - width, -width); tap <= centre + width + 1 && tap < width + o; ++tap)
        if (const auto at = block * o + tap; at >= 0 && at < length) sum += double{in[at]} * weight(phase, tap);
      out[i] = static_cast<float>(sum);
    }
  }
  auto shape = samples.sizes().vec();
  shape.back() = wanted;
  return output.reshape(shape).to(samples.device());
}

} // namespace

at::Tensor resample(const at::Tensor& samples, int from, int to) {
  if (from == to) return samples;
  const auto common = std::gcd(from, to);
  const std::int64_t o = from / common, n = to / common;
  const auto base = rolloff * static_cast<double>(std::min(o, n));
  const auto width = static_cast<std::int64_t>(std::ceil(zero_crossings * static_cast<double>(o) / base));
  const auto taps = 2 * width + o;

  /// How much of the input at `tap` is in the output at `phase`.
  const auto weight = [&](std::int64_t phase, std::int64_t tap) {
    const double shift = -static_cast<float>(phase) / static_cast<float>(n); // float32, as in torchaudio
    const auto t =
        std::clamp((shift + static_cast<double>(tap) / static_cast<double>(o)) * base, -zero_crossings, zero_crossings);
    const auto angle = std::numbers::pi * t;
    const auto window = std::cos(angle / (2 * zero_crossings));
    const auto sinc = angle == 0 ? 1.0 : std::sin(angle) / angle;
    return static_cast<float>(sinc * window * window * base / static_cast<double>(o));
  };
  const auto length = samples.size(-1);
  const auto wanted = (n * length + o - 1) / o;
  if (n * taps > largest_kernel) return sample_by_sample(samples, o, n, width, wanted, weight);
  auto kernel = at::empty({n, 1, taps}, at::kFloat);
  auto* out = kernel.mutable_data_ptr<float>();
  for (std::int64_t phase = 0; phase < n; ++phase)
    for (std::int64_t tap = -width; tap < width + o; ++tap) *out++ = weight(phase, tap);
  const auto padded = at::constant_pad_nd(samples.reshape({-1, 1, length}), {width, width + o});
  const auto phases = at::conv1d(padded, kernel.to(samples.device()), {}, at::IntArrayRef(o));
  auto shape = samples.sizes().vec();
  shape.back() = wanted;
  return phases.transpose(1, 2).reshape({phases.size(0), -1}).narrow(1, 0, wanted).reshape(shape);
}

} // namespace parley::inference::speech
