#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace parley::base {

/// ASCII letters to lower case.
inline std::string lower(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return small;
}

} // namespace parley::base
