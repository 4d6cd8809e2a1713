#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace parley::inference::chat {

/// The length in bytes of the longest end of `text` that is a beginning of `mark`, but not all of it.
inline std::size_t partial_match(std::string_view text, std::string_view mark) {
  auto size = mark.empty() ? 0 : std::min(text.size(), mark.size() - 1);
  while (!text.ends_with(mark.substr(0, size))) --size;
  return size;
}

} // namespace parley::inference::chat
