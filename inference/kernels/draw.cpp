#include "inference/kernels/draw.hpp"

#include "inference/kernels/simd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace parley::inference::cpu {

namespace {

/// Number of weights that are summed as a block, before single ones are examined.
constexpr std::size_t stretch = 256;

PARLEY_INLINE double sum_of(const float* x, std::size_t count) {
  auto sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
  return sum;
}

} // namespace

PARLEY_FOR_EACH_CPU peak find_peak(std::span<const float> x) {
  const auto* from = x.data();
  auto top = -std::numeric_limits<float>::infinity();
  auto strange = 0;
#pragma omp simd reduction(max : top) reduction(| : strange)
  for (std::size_t i = 0; i < x.size(); ++i) {
    top = from[i] > top ? from[i] : top;
    strange |= from[i] != from[i];
  }
  return {top, strange == 0};
}

PARLEY_FOR_EACH_CPU double exponentials(std::span<const float> x, float top, float* to) {
  const auto* from = x.data();
  auto sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < x.size(); ++i) {
    to[i] = exp(from[i] - top);
    sum += static_cast<double>(to[i]);
  }
  return sum;
}

PARLEY_FOR_EACH_CPU double sum_of_exponentials(std::span<const float> x, float top) {
  const auto* from = x.data();
  auto sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(exp(from[i] - top));
  return sum;
}

PARLEY_FOR_EACH_CPU bool any_above(std::span<const float> x, float than) {
  const auto* from = x.data();
  auto found = 0;
#pragma omp simd reduction(| : found)
  for (std::size_t i = 0; i < x.size(); ++i) found |= from[i] > than;
  return found != 0;
}

PARLEY_FOR_EACH_CPU sampled draw(std::span<const float> weights, double u) {
  const auto* from = weights.data();
  auto total = 0.0;
  for (std::size_t begin = 0; begin < weights.size(); begin += stretch)
    total += sum_of(from + begin, std::min(stretch, weights.size() - begin));
  if (!(total > 0) || !std::isfinite(total))
    throw std::runtime_error("no token can be sampled: the weights are not numbers");
  const auto target = u * total;
  auto below = 0.0;
  for (std::size_t begin = 0; begin < weights.size(); begin += stretch) {
    const auto count = std::min(stretch, weights.size() - begin);
    const auto here = sum_of(from + begin, count);
    if (below + here <= target) {
      below += here;
      continue;
    }
    for (auto i = begin; i < begin + count; ++i) {
      const auto weight = static_cast<double>(from[i]);
      if (below + weight > target) return {i, below, total};
      below += weight;
    }
  }
  auto last = weights.size() - 1;
  while (last > 0 && !(from[last] > 0)) --last;
  return {last, total - static_cast<double>(from[last]), total};
}

} // namespace parley::inference::cpu
