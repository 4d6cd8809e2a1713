#pragma once

#include "protocol/events.hpp"
#include "protocol/guest/effects.hpp"
#include "protocol/openai/realtime/client_event.hpp"
#include "protocol/openai/shared/items.hpp"
#include "protocol/speech/voice_map.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parley::protocol::openai::realtime {

/// One answer as a chat turn of Parley's own protocol, with `context` as the conversation; of what a camera saw, the newest
/// few. Chat ends with what a user says; where the context does not, one is asked to go on. Holds on to items, and copies none
/// of them until it is made: an event of a few bytes may stand for minutes of sound.
class chat_turn final : public guest::deferred_turn {
public:
  /// `voice`: the name in `voices` (null = there are none) of a spoken answer's voice; an unknown one is the server's own.
  chat_turn(response_request request, std::vector<kept_item> context, std::shared_ptr<const speech::voice_map> voices,
            std::string voice);

  std::size_t bytes() const override { return bytes_; }

  /// What chat would not take of it, in words, if there is something.
  const std::optional<std::string>& excess() const { return excess_; }

  /// Fails if chat would not take its functions.
  protocol::result<chat_append_event> make() const override;

private:
  response_request request_;
  std::vector<kept_item> context_;
  std::shared_ptr<const speech::voice_map> voices_;
  std::string voice_;
  std::size_t bytes_ = 0;
  std::optional<std::string> excess_;
};

/// The functions in a list of tools that was checked when it came; other tools are left out. `tools`: JSON.
std::vector<conversation::tool> offered_functions(std::string_view tools);

/// The conversation in words, for the system prompt of a duplex session: who said what, the newest `most_bytes`; of
/// what a camera saw, the newest. Empty if nothing was said.
std::string in_words(const item_list& context, std::size_t most_bytes);

/// The item at `at` in words, for a duplex session that is running. A result that does not follow its call says whose it is.
text_message item_in_words(const item_list& items, std::size_t at);

} // namespace parley::protocol::openai::realtime
