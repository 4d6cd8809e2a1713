#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

// Regular expressions of ECMA-262, as far as they are regular.
namespace parley::grammar::syntax {

inline constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

using ranges = std::vector<std::pair<char32_t, char32_t>>; ///< of characters, both ends included

enum class kind : std::uint8_t { characters, begin, end, sequence, choice, repeat };

struct node {
  kind what = kind::sequence;
  ranges set{};
  std::vector<node> parts{};
  std::uint32_t least = 0, most = 0; ///< how often, of a repeat
};

/// Says why an expression is not followed.
struct unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws `unreadable`.
node parse(std::string_view text);

} // namespace parley::grammar::syntax
