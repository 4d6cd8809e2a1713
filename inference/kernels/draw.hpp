#pragma once

#include <cstddef>
#include <span>

// The parts of drawing from a row of logits that visit all of them, in plain memory.
namespace parley::inference::cpu {

/// The largest number, and whether none is NaN.
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

/// Whether one of them is larger.
bool any_above(std::span<const float> x, float than);

/// What was sampled, and its position in the cumulative weights.
struct sampled {
  std::size_t index;
  double below; ///< sum of the weights before it
  double total; ///< sum of all
};

/// The first index whose cumulative weight exceeds u (in [0, 1)) times the total; if rounding leaves none, the last one
/// with a weight. Throws std::runtime_error unless the total is positive and finite.
sampled draw(std::span<const float> weights, double u);

} // namespace parley::inference::cpu
