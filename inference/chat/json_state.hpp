#pragma once

#include "inference/chat/json_grammar.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace parley::inference::chat {

/// How far a text has come in a grammar, byte by byte. White space is one optional space after a comma and a colon.
/// What has no schema nests at most `most_open` deep. A plain value: copies are states of their own. The grammar must outlive it.
class json_state {
public:
  static constexpr int most_open = 32;

  explicit json_state(const json_grammar& grammar);

  /// Whether the text may go on with these bytes. If not, the state is of no use any more.
  bool feed(std::string_view bytes);

  /// The text is complete; nothing may follow.
  bool done() const { return open_ == 0; }

  /// A short text that completes what is there.
  std::string completion() const;

private:
  enum class part : std::uint8_t { forms, tail, value, literal, word, object, array, string, number };
  enum class step : std::uint8_t { taken, refused, again };

  /// Something that has begun and not ended.
  struct frame {
    part kind;
    std::uint8_t at = 0;    ///< where in it
    std::uint16_t rule = 0; ///< or the number of the form
    std::uint16_t low = 0;  ///< what still matches of a sorted list: [low, high)
    std::uint16_t high = 0;
    std::uint32_t length = 0; ///< bytes that matched
    std::uint64_t seen = 0;   ///< properties that the object has
  };

  frame& top() { return stack_[static_cast<std::size_t>(open_ - 1)]; }
  bool push(frame next);
  void settle();
  void begin_form(frame& at);
  bool feed(unsigned char byte);
  step take(unsigned char byte);
  step take_form(frame& at, unsigned char byte);
  step begin_value(frame& at, unsigned char byte);
  step take_literal(frame& at, unsigned char byte);
  step take_object(frame& at, unsigned char byte);
  step take_array(frame& at, unsigned char byte);
  step take_string(frame& at, unsigned char byte);
  step take_number(frame& at, unsigned char byte);
  step begin_key(frame& at);
  step take_key(frame& at, unsigned char byte);
  const json_grammar::rule& rule_of(const frame& at) const { return grammar_->rules()[at.rule]; }
  std::string rest_of(const frame& at) const;
  std::string rest_of_object(const frame& at) const;

  const json_grammar* grammar_;
  std::array<frame, most_open + 4> stack_{};
  int open_ = 0;
};

} // namespace parley::inference::chat
