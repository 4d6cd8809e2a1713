#include "protocol/session/speaking_turn.hpp"

#include <utility>

namespace parley::protocol {

const std::string& speaking_turn::speak(std::string_view text) {
  open_ = true;
  if (by_ == naming::by_unit) return unit_id();
  if (id_.empty()) id_ = make_response_id(random_);
  if (tell_done_) text_ += text;
  return id_;
}

std::string speaking_turn::listen() {
  return by_ == naming::by_unit ? unit_id() : fresh_id();
}

std::string speaking_turn::turn_id() const {
  return by_ == naming::by_unit ? "turn_" + std::to_string(turns_ + 1) : std::string();
}

void speaking_turn::finish(std::string_view reason, const std::string& input_id, const usage& total,
                           effect_writer& out) {
  if (!std::exchange(open_, false)) return;
  ++turns_;
  response_done done{.response_id = std::exchange(id_, {}),
                     .input_id = input_id,
                     .text = std::exchange(text_, {}),
                     .audio = nullptr,
                     .reason = std::string(reason),
                     .measured = {},
                     .used = total,
                     .turn_id = {}};
  if (tell_done_ && out.spoken == dialect::current) out.say(std::move(done));
}

const std::string& speaking_turn::unit_id() {
  if (unit_id_.empty()) unit_id_ = make_response_id(random_);
  return unit_id_;
}

} // namespace parley::protocol
