#pragma once

#include "protocol/ids.hpp"
#include "protocol/session/effect_writer.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace parley::protocol {

/// Names the answers of a duplex session. Normally a speaking turn has one `response_id`, and each `listen` a new one
/// (docs/protocol.md 4). With `config.unit_responses` each unit's answer has its own, and `turn_id` identifies the turn
/// (docs/protocol.md 15).
class speaking_turn {
public:
  enum class naming : std::uint8_t { by_turn, by_unit };

  /// `tell_done`: setting `protocol.duplex_response_done`.
  speaking_turn(random_source& random, bool tell_done, naming by)
      : random_(random), tell_done_(tell_done && by == naming::by_turn), by_(by) {}

  /// Call before the first answer to a unit.
  void begin_unit() { unit_id_.clear(); }

  /// Call before a text or audio delta is sent; returns its `response_id`. Opens a turn if none is open.
  const std::string& speak(std::string_view text);

  /// The `response_id` of a `listen` that answers the unit.
  std::string listen();

  /// A new id, for a `listen` that answers no unit.
  std::string fresh_id() { return make_response_id(random_); }

  /// The turn of the event about to be sent; empty unless answers are named by unit. The turn continues until `finish`.
  std::string turn_id() const;

  /// Ends the turn: after a delta with `end_of_turn`, by interruption (`cancelled`), or by a failure (`error`).
  void finish(std::string_view reason, const std::string& input_id, const usage& total, effect_writer& out);

private:
  const std::string& unit_id();

  random_source& random_;
  bool tell_done_;
  naming by_;
  bool open_ = false;
  std::uint64_t turns_ = 0; ///< turns that are over
  std::string id_;          ///< `response_id` of the open turn; empty if answers are named by unit
  std::string unit_id_;     ///< `response_id` of the unit; empty until its answer begins
  std::string text_;        ///< text of the open turn, for its `response.done`
};

} // namespace parley::protocol
