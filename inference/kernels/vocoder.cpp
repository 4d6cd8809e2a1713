#include "inference/kernels/vocoder.hpp"

#include "inference/kernels/simd.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>

namespace parley::inference::cpu {

namespace {

/// Columns that are processed together.
constexpr std::int64_t columns_together = 64;
constexpr std::int64_t max_bins = overlapped_transform::largest_size / 2 + 1;

/// e^(i sin(x)) * min(e^m, 100), for many columns.
PARLEY_INLINE void to_parts(const float* m, const float* x, std::int64_t count, float* real, float* imaginary) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const auto raw = exp(m[i]);
    const auto magnitude = raw < 100.0F ? raw : 100.0F;
    const auto angle = sine(x[i]); // within [-1, 1], so the sine and cosine below need no range reduction
    real[i] = magnitude * small_cosine(angle);
    imaginary[i] = magnitude * small_sine(angle);
  }
}

PARLEY_INLINE void transform(const float* x, std::int64_t stride, std::int64_t columns, const float* basis,
                             std::int64_t size, std::int64_t hop, float* phases, std::int64_t phase_stride) {
  const auto bins = size / 2 + 1;
  alignas(64) float parts[2 * max_bins][columns_together];
  for (std::int64_t begin = 0; begin < columns; begin += columns_together) {
    const auto count = std::min(columns_together, columns - begin);
    for (std::int64_t bin = 0; bin < bins; ++bin)
      to_parts(x + bin * stride + begin, x + (bins + bin) * stride + begin, count, parts[bin], parts[bins + bin]);
    for (std::int64_t n = 0; n < size; ++n) {
      float sums[columns_together] = {};
      for (std::int64_t k = 0; k < 2 * bins; ++k) {
        const auto weight = basis[n * 2 * bins + k];
#pragma omp simd
        for (std::int64_t i = 0; i < columns_together; ++i) sums[i] += weight * parts[k][i];
      }
      // Position n of column c is sample hop * (c + n / hop) + n % hop.
      auto* into = phases + n % hop * phase_stride + begin + n / hop;
      for (std::int64_t i = 0; i < count; ++i) into[i] += sums[i];
    }
  }
}

} // namespace

PARLEY_FOR_EACH_CPU static void transform_columns(const float* x, std::int64_t stride, std::int64_t columns,
                                                  const float* basis, std::int64_t size, std::int64_t hop,
                                                  float* phases, std::int64_t phase_stride) {
  transform(x, stride, columns, basis, size, hop, phases, phase_stride);
}

bool overlapped_transform::takes(std::int64_t size, std::int64_t hop) {
  return size >= 2 && size <= largest_size && size % 2 == 0 && hop >= 1 && size % hop == 0;
}

overlapped_transform::overlapped_transform(std::vector<float> window, std::int64_t hop)
    : size_(static_cast<std::int64_t>(window.size())), hop_(hop), window_(std::move(window)) {
  if (!takes(size_, hop_))
    throw std::runtime_error("no inverse transform of " + std::to_string(size_) + " samples in steps of " +
                             std::to_string(hop_));
  const auto bins = size_ / 2 + 1;
  for (std::int64_t n = 0; n < size_; ++n)
    for (std::int64_t part = 0; part < 2 * bins; ++part) {
      const auto bin = part % bins;
      const auto angle = 2 * std::numbers::pi * static_cast<double>(bin * n % size_) / static_cast<double>(size_);
      const auto twice = bin == 0 || 2 * bin == size_ ? 1.0 : 2.0; // accounts for the bins that are left out
      const auto wave = part < bins ? std::cos(angle) : -std::sin(angle);
      basis_.push_back(static_cast<float>(wave * twice / static_cast<double>(size_) *
                                          static_cast<double>(window_[static_cast<std::size_t>(n)])));
    }
}

void overlapped_transform::samples(const float* x, std::int64_t stride, std::int64_t columns, float limit,
                                   float* to) const {
  const auto places = columns + size_ / hop_; // positions per phase
  std::vector<float> phases(static_cast<std::size_t>(hop_ * places));
  transform_columns(x, stride, columns, basis_.data(), size_, hop_, phases.data(), places);
  // Every sum was windowed twice.
  auto share = [&](std::int64_t place, std::int64_t phase) {
    auto sum = 0.0F;
    for (auto n = phase; n < size_; n += hop_) {
      const auto column = place - n / hop_;
      if (column >= 0 && column < columns) {
        const auto w = window_[static_cast<std::size_t>(n)];
        sum += w * w;
      }
    }
    return 1 / sum;
  };
  const auto first = size_ / 2 / hop_, last = first + columns - 1, whole = size_ / hop_ - 1;
  std::vector<float> inside;
  inside.reserve(static_cast<std::size_t>(hop_));
  for (std::int64_t phase = 0; phase < hop_; ++phase) inside.push_back(columns > whole ? share(whole, phase) : 0);
  for (auto place = first; place < last; ++place)
    for (std::int64_t phase = 0; phase < hop_; ++phase) {
      const auto factor =
          place >= whole && place < columns ? inside[static_cast<std::size_t>(phase)] : share(place, phase);
      *to++ = std::clamp(phases[static_cast<std::size_t>(phase * places + place)] * factor, -limit, limit);
    }
}

} // namespace parley::inference::cpu
