#pragma once

#include "base/lower.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

// Small text functions for headers and settings. Pure.
namespace parley::net {

using base::lower;

/// Removes and returns the first word of a list separated by spaces; nothing if none is left.
inline std::optional<std::string_view> take_word(std::string_view& list) {
  list.remove_prefix(std::min(list.find_first_not_of(' '), list.size()));
  if (list.empty()) return std::nullopt;
  const auto word = list.substr(0, list.find(' '));
  list.remove_prefix(word.size());
  return word;
}

/// Input from outside, made safe for the log: one short line of printable ASCII.
inline std::string for_log(std::string_view text) {
  constexpr std::size_t longest = 200;
  std::string shown(text.substr(0, longest));
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > longest ? shown + "..." : shown;
}

} // namespace parley::net
