#include "client/latencies.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace parley::client {

latencies::seconds latencies::quantile(double share) const {
  if (times_.empty()) return seconds(0);
  std::vector<seconds> sorted = times_;
  const auto count = static_cast<double>(sorted.size());
  const auto rank = static_cast<std::size_t>(std::clamp(std::ceil(share * count), 1.0, count));
  const auto found = sorted.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(sorted.begin(), found, sorted.end());
  return *found;
}

namespace {

std::string fixed(double number, int decimals) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << number;
  return text.str();
}

} // namespace

std::string milliseconds_text(latencies::seconds time) {
  return fixed(time.count() * 1000, 1) + " ms";
}
std::string seconds_text(latencies::seconds time) {
  return fixed(time.count(), 2) + " s";
}
std::string factor_text(double factor) {
  return fixed(factor, 3);
}

} // namespace parley::client
