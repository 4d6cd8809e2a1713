#include "protocol/media/two_thirds.hpp"

#include "base/each_cpu.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

namespace parley::protocol {
namespace {

// Three samples become two: one where the first of them is, and one in the middle between the second and the third. Each
// is a sum over the input around it, with a low-pass filter's taps for that position.

constexpr std::size_t columns = 33;       ///< of three taps
constexpr std::size_t taps = 3 * columns; ///< from `reach` samples before the first of the three
constexpr std::size_t reach = taps / 2 - 1;
constexpr double cutoff = 7400.0 / 24'000; ///< of the input's rate
constexpr double kaiser_beta = 7;
constexpr std::size_t block = 32; ///< pairs of results that are made at once

using tap_row = std::array<float, taps>;

double bessel(double x) {
  double sum = 1, term = 1;
  for (int k = 1; k < 30; ++k) {
    term *= (x / 2 / k) * (x / 2 / k);
    sum += term;
  }
  return sum;
}

/// The taps for a result that lies `offset` samples behind the first of the three.
tap_row make_taps(double offset) {
  constexpr double half_width = 48;
  tap_row out{};
  double sum = 0;
  for (std::size_t i = 0; i < taps; ++i) {
    const double x = static_cast<double>(i) - static_cast<double>(reach) - offset;
    if (std::abs(x) > half_width) continue;
    const double angle = 2 * std::numbers::pi * cutoff * x;
    const double ideal = x == 0 ? 2 * cutoff : std::sin(angle) / (std::numbers::pi * x);
    const double window = bessel(kaiser_beta * std::sqrt(1 - x * x / half_width / half_width)) / bessel(kaiser_beta);
    out[i] = static_cast<float>(ideal * window);
    sum += ideal * window;
  }
  for (auto& tap : out) tap = static_cast<float>(tap / sum); // a constant passes as it is
  return out;
}

const tap_row& first_taps() {
  static const tap_row made = make_taps(0);
  return made;
}
const tap_row& second_taps() {
  static const tap_row made = make_taps(1.5);
  return made;
}

// The compiler's own vectors, each sum by name: otherwise the sums go through memory for every tap.
using lanes = float __attribute__((vector_size(block / 2 * sizeof(float))));

/// `block` pairs from `from`, which holds the first one's taps and all that follow.
PARLEY_FOR_EACH_CPU void make_block(const float* from, const float* first, const float* second, float* out) {
  constexpr std::size_t half = block / 2;
  lanes even_low{}, even_high{}, odd_low{}, odd_high{};
  float lane[block + columns];
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t i = 0; i < block + columns; ++i) lane[i] = from[3 * i + row];
    for (std::size_t column = 0; column < columns; ++column) {
      const float a = first[3 * column + row], b = second[3 * column + row];
      lanes low, high;
      std::memcpy(&low, lane + column, sizeof low);
      std::memcpy(&high, lane + column + half, sizeof high);
      even_low += a * low;
      even_high += a * high;
      odd_low += b * low;
      odd_high += b * high;
    }
  }
  for (std::size_t i = 0; i < half; ++i) {
    out[2 * i] = even_low[i];
    out[2 * i + 1] = odd_low[i];
    out[2 * (half + i)] = even_high[i];
    out[2 * (half + i) + 1] = odd_high[i];
  }
}

} // namespace

two_thirds::two_thirds() : waiting_(reach) {}

void two_thirds::feed(std::span<const float> samples, std::vector<float>& out) {
  constexpr std::size_t needed = 3 * (block + columns);
  waiting_.insert(waiting_.end(), samples.begin(), samples.end());
  std::size_t used = 0;
  for (; waiting_.size() - used >= needed; used += 3 * block) {
    const auto end = out.size();
    out.resize(end + 2 * block);
    make_block(waiting_.data() + used, first_taps().data(), second_taps().data(), out.data() + end);
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(used));
}

} // namespace parley::protocol
