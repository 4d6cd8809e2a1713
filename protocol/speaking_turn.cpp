#include "protocol/speaking_turn.hpp"

#include <utility>

namespace parley::protocol {

const std::string& speaking_turn::speak(std::string_view text) {
  if (id_.empty()) id_ = make_response_id(random_);
  if (tell_done_) text_ += text;
  return id_;
}

void speaking_turn::finish(std::string_view reason, const std::string& input_id, const usage& total,
                           effect_writer& out) {
  if (id_.empty()) return;
  response_done done{.response_id = std::exchange(id_, {}),
                     .input_id = input_id,
                     .text = std::exchange(text_, {}),
                     .audio = nullptr,
                     .reason = std::string(reason),
                     .measured = {},
                     .used = total};
  if (tell_done_ && out.spoken == dialect::current) out.say(std::move(done));
}

} // namespace parley::protocol
