#pragma once

#include <cstddef>
#include <span>

// What drawing from a row of logits walks over all of them for, in plain memory.
namespace parley::inference::cpu {

/// The largest number and whether all are numbers.
struct peak {
  float top;
  bool sane;
};
/// `x`: not empty.
peak find_peak(std::span<const float> x);

/// to = e^(x - top); `to` may be `x`. Returns the sum.
double exponentials(std::span<const float> x, float top, float* to);

/// The sum of e^(x - top).
double sum_of_exponentials(std::span<const float> x, float top);

/// Whether one of them is larger.
bool any_above(std::span<const float> x, float than);

/// What was drawn, and where in the cumulated weights it lies.
struct drawn {
  std::size_t index;
  double below; ///< sum of the weights before it
  double total; ///< sum of all
};

/// The first index whose cumulated weight exceeds u (in [0, 1)) of the total; if rounding leaves none, the last with a
/// weight. Throws std::runtime_error unless the weights' total is positive and finite.
drawn draw(std::span<const float> weights, double u);

} // namespace parley::inference::cpu
