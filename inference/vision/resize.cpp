#include "inference/vision/resize.hpp"

#include <algorithm>
#include <cmath>

namespace parley::inference::vision {

namespace {

constexpr int fraction_bits = 22;
constexpr std::int32_t half = 1 << (fraction_bits - 1);

/// Keys' cubic with a = -0.5.
double cubic(double t) {
  constexpr double a = -0.5;
  t = std::abs(t);
  if (t < 1.0) return ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0;
  if (t < 2.0) return (((t - 5.0) * t + 8.0) * t - 4.0) * a;
  return 0.0;
}

/// The input samples [begin, begin + count) that contribute to one output sample, weighted by `weights[first...]`.
struct tap {
  int begin;
  int count;
  std::size_t first;
};

struct filter {
  std::vector<tap> taps;
  std::vector<std::int32_t> weights;
};

filter make_filter(int in, int out) {
  filter f;
  const double scale = static_cast<double>(in) / out;
  const double stretch = std::max(scale, 1.0);
  const double support = 2.0 * stretch;
  const double shrink = 1.0 / stretch;
  std::vector<double> w;
  for (int i = 0; i < out; ++i) {
    const double center = (i + 0.5) * scale;
    // Cut off, as the reference does.
    // NOLINTBEGIN(bugprone-incorrect-roundings)
    const int begin = std::max(0, static_cast<int>(center - support + 0.5));
    const int count = std::min(in, static_cast<int>(center + support + 0.5)) - begin;
    // NOLINTEND(bugprone-incorrect-roundings)
    w.clear();
    double sum = 0;
    for (int x = 0; x < count; ++x) {
      w.push_back(cubic((x + begin - center + 0.5) * shrink));
      sum += w.back();
    }
    f.taps.push_back({begin, count, f.weights.size()});
    for (double weight : w) {
      if (sum != 0.0) weight /= sum;
      f.weights.push_back(static_cast<std::int32_t>((weight < 0 ? -0.5 : 0.5) + weight * (1 << fraction_bits)));
    }
  }
  return f;
}

std::uint8_t rounded(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> fraction_bits, 0, 255));
}

/// Computes only rows [first, last) of the result.
picture resize_columns(const picture& from, int width, int first, int last) {
  auto f = make_filter(from.width, width);
  picture to{width, last - first, {}};
  to.rgb.resize(std::size_t{3} * static_cast<std::size_t>(width) * static_cast<std::size_t>(last - first));
  auto* out = to.rgb.data();
  for (int y = first; y < last; ++y) {
    const auto* row =
        from.rgb.data() + std::size_t{3} * static_cast<std::size_t>(from.width) * static_cast<std::size_t>(y);
    for (const auto& t : f.taps) {
      const auto* px = row + 3 * t.begin;
      const auto* w = f.weights.data() + t.first;
      std::int32_t red = half, green = half, blue = half;
      for (int i = 0; i < t.count; ++i, px += 3) {
        red += px[0] * w[i];
        green += px[1] * w[i];
        blue += px[2] * w[i];
      }
      *out++ = rounded(red);
      *out++ = rounded(green);
      *out++ = rounded(blue);
    }
  }
  return to;
}

/// `from` contains the rows of `f`'s picture from `offset` on.
picture resize_rows(const picture& from, const filter& f, int offset) {
  picture to{from.width, static_cast<int>(f.taps.size()), {}};
  auto stride = std::size_t{3} * static_cast<std::size_t>(from.width);
  to.rgb.resize(stride * f.taps.size());
  auto* out = to.rgb.data();
  std::vector<std::int32_t> sums(stride);
  for (const auto& t : f.taps) {
    std::fill(sums.begin(), sums.end(), half);
    for (int i = 0; i < t.count; ++i) {
      const auto* row = from.rgb.data() + stride * static_cast<std::size_t>(t.begin - offset + i);
      const auto weight = f.weights[t.first + static_cast<std::size_t>(i)];
      for (std::size_t x = 0; x < stride; ++x) sums[x] += row[x] * weight;
    }
    for (auto sum : sums) *out++ = rounded(sum);
  }
  return to;
}

} // namespace

picture resize(const picture& from, int width, int height) {
  if (height == from.height) return width == from.width ? from : resize_columns(from, width, 0, from.height);
  auto rows = make_filter(from.height, height);
  if (width == from.width) return resize_rows(from, rows, 0);
  // Rows that are not needed are not computed.
  const int first = rows.taps.front().begin, last = rows.taps.back().begin + rows.taps.back().count;
  return resize_rows(resize_columns(from, width, first, last), rows, first);
}

} // namespace parley::inference::vision
