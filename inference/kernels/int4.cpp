#include "inference/kernels/int4.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace parley::inference::cpu {

namespace {

constexpr std::int64_t run = int4_rows::run, half_run = int4_rows::run_bytes, word = int4_rows::word;

constexpr std::int64_t largest_group = 256;

PARLEY_INLINE float step_of(std::uint8_t pair, bool upper) {
  return static_cast<float>((upper ? pair >> 4 : pair & 15) - 8);
}

/// The numbers of one run, whose words lie `apart` bytes from one another.
template<class Number>
PARLEY_INLINE void unpack_run(const std::uint8_t* steps, std::int64_t apart, float scale, float offset, Number* to) {
  std::uint8_t own[half_run];
  for (std::int64_t w = 0; w < int4_rows::words; ++w) std::memcpy(own + w * word, steps + w * apart, word);
  for (std::int64_t i = 0; i < half_run; ++i) {
    narrow(step_of(own[i], false) * scale + offset, to[i]);
    narrow(step_of(own[i], true) * scale + offset, to[i + half_run]);
  }
}

template<class Number>
PARLEY_INLINE void unpack_rows(const int4_rows& matrix, std::int64_t count, Number* to) {
  for (std::int64_t row = 0; row < count; ++row) {
    const auto from = matrix.from(row);
    for (std::int64_t at = 0; at < from.in; at += run) {
      const auto place = int4_rows::place_of(at, from.in);
      const auto* scale = from.scales + at / from.group * 2;
      unpack_run(from.steps + place.first, place.apart, widen(scale[0]), widen(scale[1]), to + row * from.in + at);
    }
  }
}

/// A number is (step - 8) * scale + offset.
struct line {
  float scale, offset;
};

/// As it is stored.
PARLEY_INLINE line rounded(line of) {
  bfloat16 scale, offset;
  narrow(std::max(std::abs(of.scale), 1e-12F), scale);
  narrow(of.offset, offset);
  return {widen(scale), widen(offset)};
}

PARLEY_INLINE float nearest_step(float number, line of) {
  const auto step = std::floor((number - of.offset) / of.scale + 8.5F);
  return (step < 0 ? 0 : step > 15 ? 15 : step) - 8;
}

/// A group, and how much an error of each number counts.
struct group {
  const float *numbers, *weights;
  std::int64_t count;
};

/// The line that fits the numbers best, if they keep the steps that they have on this one.
PARLEY_INLINE line fitted(const group& all, line of) {
  auto weights = 0.0F, steps = 0.0F, squares = 0.0F, sum = 0.0F, products = 0.0F;
#pragma omp simd reduction(+ : weights, steps, squares, sum, products)
  for (std::int64_t i = 0; i < all.count; ++i) {
    const auto number = all.numbers[i], weight = all.weights[i], step = nearest_step(number, of);
    weights += weight, steps += weight * step, squares += weight * step * step;
    sum += weight * number, products += weight * step * number;
  }
  const auto spread = squares * weights - steps * steps;
  if (spread < 1e-3F * weights * weights) return of; // all on one step
  const auto scale = (products * weights - steps * sum) / spread;
  return rounded({scale, (sum - scale * steps) / weights});
}

PARLEY_INLINE float weighted_error(const group& all, line of) {
  auto sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < all.count; ++i) {
    const auto apart = nearest_step(all.numbers[i], of) * of.scale + of.offset - all.numbers[i];
    sum += all.weights[i] * apart * apart;
  }
  return sum;
}

} // namespace

PARLEY_FOR_EACH_CPU void quantize_group(const float* numbers, std::int64_t count, std::uint8_t* steps, bfloat16& scale,
                                        bfloat16& offset) {
  auto squares = 0.0F;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < count; ++i) squares += numbers[i] * numbers[i];
  const auto mean = std::max(squares / static_cast<float>(count), std::numeric_limits<float>::min());
  float weights[largest_group];
  for (std::int64_t i = 0; i < count; ++i) weights[i] = 1 + numbers[i] * numbers[i] / mean;
  const group all{numbers, weights, count};
  const auto [lowest, highest] = std::minmax_element(numbers, numbers + count);
  const auto middle = (*lowest + *highest) / 2, range = *highest - *lowest;
  line best{};
  auto least = std::numeric_limits<float>::infinity();
  for (const auto part : {1.0F, 0.95F, 0.9F, 0.84F, 0.77F, 0.7F, 0.6F}) {
    const auto step = range * part / 15;
    auto of = rounded({step, middle + step / 2});
    for (auto fits = 0; fits < 3; ++fits) {
      if (const auto error = weighted_error(all, of); error < least) least = error, best = of;
      of = fitted(all, of);
    }
  }
  narrow(best.scale, scale);
  narrow(best.offset, offset);
  for (std::int64_t i = 0; i < count; ++i) steps[i] = static_cast<std::uint8_t>(nearest_step(numbers[i], best) + 8);
}

void pack(const std::uint8_t* steps, std::int64_t rows, std::int64_t in, std::uint8_t* to) {
  for (std::int64_t row = 0; row < rows; ++row, steps += in, to += in / 2)
    for (std::int64_t at = 0; at < in; at += run) {
      const auto place = int4_rows::place_of(at, in);
      for (std::int64_t byte = 0; byte < half_run; ++byte)
        to[place.of(byte)] = static_cast<std::uint8_t>(steps[at + byte] | steps[at + byte + half_run] << 4);
    }
}

PARLEY_FOR_EACH_CPU void unpack(const int4_rows& matrix, std::int64_t count, float* to) {
  unpack_rows(matrix, count, to);
}

PARLEY_FOR_EACH_CPU void unpack(const int4_rows& matrix, std::int64_t count, bfloat16* to) {
  unpack_rows(matrix, count, to);
}

} // namespace parley::inference::cpu
