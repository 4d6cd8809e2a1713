#pragma once

#include "protocol/effect_writer.hpp"
#include "protocol/ids.hpp"

#include <string>
#include <string_view>

namespace parley::protocol {

/// Names the answers of a duplex session: one `response_id` for each speaking turn, a fresh one for each `listen`
/// (PROTOCOL.md 4).
class speaking_turn {
public:
  /// `tell_done`: setting `protocol.duplex_response_done`.
  speaking_turn(random_source& random, bool tell_done) : random_(random), tell_done_(tell_done) {}

  /// Before a text or audio delta leaves: its id. Opens a turn if none is open.
  const std::string& speak(std::string_view text);

  /// The turn is over after a delta with `end_of_turn`, was cut (`cancelled`), or came to nothing (`error`).
  void finish(std::string_view reason, const std::string& input_id, const usage& total, effect_writer& out);

  std::string listen_id() { return make_response_id(random_); }

private:
  random_source& random_;
  bool tell_done_;
  std::string id_; ///< empty between turns
  std::string text_;
};

} // namespace parley::protocol
