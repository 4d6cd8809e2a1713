#pragma once

#include "grammar/json_grammar.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace parley::grammar {

/// How far a text has come in a grammar, byte by byte. White space is one optional space after a comma and a colon. Where a value may be
/// one of several, the state has each of these that the text obeys so far, at most `most_alternatives`; each can be ended, and what is
/// nested at most `most_open` deep. A plain value: copies are states of their own, and a copy into a used one allocates nothing. The
/// grammar must outlive it.
class json_state {
public:
  static constexpr std::size_t most_alternatives = 32;

  explicit json_state(const json_grammar& grammar);

  /// Whether the text may go on with these bytes. If not, the state is of no use any more.
  bool feed(std::string_view bytes);

  /// Drops what is not needed any more. To be called now and then, so that copies stay small.
  void forget();

  /// The text is complete; nothing may follow.
  bool done() const;

  /// A short text that completes what is there, and its size.
  std::string completion() const;
  std::size_t completion_bytes() const;

private:
  enum class part : std::uint8_t { over, forms, tail, value, literal, word, object, array, string, number, bounded };

  static constexpr std::uint16_t none = 0xFFFF;
  static constexpr auto not_known = std::size_t(-1);

  /// Something that has begun and not ended. What is around it is at `parent` of `below_`, and goes on when it has ended.
  struct frame {
    part kind;
    std::uint8_t at = 0;      ///< where in it
    std::uint8_t open = 0;    ///< objects and arrays around its values
    std::uint8_t missing = 0; ///< bytes of a character, or digits of an escape
    std::uint16_t of = 0;     ///< rule; of a value, its choice; of a tail, its form
    std::uint16_t parent = none;
    std::uint16_t low =
        0; ///< what still matches of a sorted list: [low, high); of a character's next byte: [low, high]
    std::uint16_t high = 0;
    std::uint16_t keys = none;  ///< of a string: its automaton; of an object: the choice of the next value
    std::uint16_t position = 0; ///< in that automaton
    std::uint32_t length = 0;   ///< bytes that matched; characters, items, or members that are no properties
    std::uint64_t seen = 0;     ///< properties that the object has; digits of a number
    bool operator==(const frame&) const = default;
  };

  bool feed(unsigned char byte);
  void add(const frame& one);
  void drop_same();
  void add_after(const frame& ended);
  void go_on_after(const frame& ended, unsigned char byte);
  std::uint16_t put_below(const frame& one);
  void settle_forms();

  void take(const frame& one, unsigned char byte);
  void take_form(frame at, unsigned char byte);
  void begin_value(choice_id value, std::uint16_t parent, std::uint8_t open, unsigned char byte);
  void begin_typed(const rule& of, frame made, unsigned char byte);
  void begin_number(const rule& of, frame made, unsigned char byte);
  void take_literal(frame at, unsigned char byte);
  void take_object(frame at, unsigned char byte);
  void begin_keys(frame at);
  void take_key(frame at, unsigned char byte);
  bool may_have(const rule& of, const frame& at, std::size_t property) const;
  bool may_have_other(const rule& of, const frame& at) const;
  bool has_room(const rule& of, const frame& at, bool property) const;
  bool may_end(const rule& of, const frame& at) const;
  void take_array(frame at, unsigned char byte);
  void take_string(frame at, unsigned char byte);
  void take_escape(frame at, unsigned char byte);
  void take_character(frame at, unsigned char byte);
  void take_number(frame at, unsigned char byte);
  void take_bounded(frame at, unsigned char byte);
  void end_string(const frame& at);

  std::size_t rest_of(const frame& at, std::string* out) const;
  std::size_t rest_of_array(const frame& at, std::string* out) const;
  std::size_t rest_of_object(const frame& at, std::string* out) const;
  std::size_t rest_of_string(const frame& at, std::string* out) const;
  std::size_t rest_of_all(const frame& at, std::string* out) const;
  std::size_t rest_below(std::uint16_t at) const;

  static number_prefix prefix_of(const frame& at);
  const rule& rule_of(const frame& at) const { return grammar_->rules().rules[at.of]; }
  const rule_set& rules() const { return grammar_->rules(); }

  const json_grammar* grammar_;
  std::vector<frame> tops_; ///< the innermost part of each alternative
  std::vector<frame> next_; ///< those after the byte that is being taken
  std::vector<frame> below_;
  mutable std::vector<std::size_t> below_rests_; ///< of each of them, as far as it was asked for
  bool ended_ = false;                           ///< a value, with the byte that is being taken or before it
};

} // namespace parley::grammar
