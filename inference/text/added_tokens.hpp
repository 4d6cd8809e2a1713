#pragma once

#include "inference/text/flat_map.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace parley::inference::text {

/// Finds the added tokens in raw text: leftmost first, the longest one at each position. Takes time linear in the text
/// times the longest token (docs/model/thinker.md 1, step 1).
class added_token_trie {
public:
  /// `token`: its text, not empty.
  void add(std::string_view token, std::int64_t id);

  struct match {
    std::size_t begin;
    std::size_t end; ///< begin == end: no match
    std::int64_t id;
  };

  /// The first match at or after `from`; if there is none, begin == end == text.size().
  match find(std::string_view text, std::size_t from) const;

private:
  static std::uint64_t edge(std::uint32_t node, char byte) {
    return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }

  flat_map<std::uint32_t> children_{1024};
  std::vector<std::int64_t> ids_{-1}; ///< indexed by node; -1 = no token ends here
};

} // namespace parley::inference::text
