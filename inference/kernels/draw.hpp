#pragma once

#include <cstddef>
#include <span>

// The parts of sampling that visit a whole row of logits, in plain memory.
namespace parley::inference::cpu {

/// The largest number, and whether the row is free of NaN.
struct peak {
  float top;
  bool sane;
};
/// `x` must not be empty.
peak find_peak(std::span<const float> x);

/// to = e^(x - top); `to` may be `x`. Returns the sum.
double exponentials(std::span<const float> x, float top, float* to);

/// The sum of e^(x - top).
double sum_of_exponentials(std::span<const float> x, float top);

/// Whether any number is larger than `than`.
bool any_above(std::span<const float> x, float than);

/// The sampled index, and its position in the cumulative weights.
struct sampled {
  std::size_t index;
  double below; ///< sum of the weights before it
  double total; ///< sum of all
};

/// The first index whose cumulative weight exceeds u (in [0, 1)) times the total; if rounding leaves none, the last one
/// with a weight. Throws std::runtime_error unless the total is positive and finite.
sampled draw(std::span<const float> weights, double u);

} // namespace parley::inference::cpu
