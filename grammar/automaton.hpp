#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parley::grammar {

/// A set of strings in UTF-8: a deterministic automaton over bytes, which begins in state 0. Every state leads to the end of one of its
/// strings, so that what fits so far can be ended. Immutable.
class automaton {
public:
  using state = std::uint16_t;
  static constexpr state dead = 0xFFFF;
  static constexpr std::size_t most_states = 4096;

  /// The same without the promise that every state leads anywhere; `dead` may be the target of a byte.
  struct table {
    std::array<std::uint8_t, 256> classes{}; ///< of bytes that no state tells apart
    std::size_t width = 1;                   ///< how many classes
    std::vector<state> next{};               ///< of each state and class
    std::vector<bool> ends{};                ///< whether a string may end in the state

    std::size_t states() const { return ends.size(); }
    state step(state from, unsigned char byte) const {
      return from == dead ? dead : next[from * width + classes[byte]];
    }
  };

  /// Costs are counted down from `work`; below 0 the result is of no use.
  explicit automaton(const table& from, std::int64_t& work);

  bool empty() const { return table_.ends.empty(); }
  state step(state from, unsigned char byte) const { return table_.step(from, byte); }
  bool ends(state at) const { return table_.ends[at]; }
  const table& as_table() const { return table_; }
  bool holds(std::string_view text) const;

  /// Appends, as in a JSON string, what makes the shortest of its strings of what led to the state.
  void append_rest(state at, std::string& out) const;
  std::uint32_t rest_bytes(state at) const { return rest_[at]; }

private:
  table table_;
  std::vector<std::uint32_t> rest_;        ///< bytes of JSON from each state to an end
  std::vector<unsigned char> towards_end_; ///< the next byte on that way
};

/// As JSON writes it in a string.
std::string_view json_escape(unsigned char byte);

// How to make automata of others. Nothing, if the result would have more than `automaton::most_states` states.
using automaton_table = std::optional<automaton::table>;

automaton_table both(const automaton::table& a, const automaton::table& b, std::int64_t& work);
/// All strings but these; also those that are no UTF-8.
automaton::table complement(const automaton::table& of);
automaton_table all_but(std::span<const std::string> these, std::int64_t& work);
/// The strings of `least` to `most` characters. A `most` of 2^32-1 is no bound.
automaton_table of_length(const automaton::table& of, std::uint32_t least, std::uint32_t most, std::int64_t& work);
automaton::table any_string();
automaton::table no_string();

} // namespace parley::grammar
