#pragma once

#include "inference/duplex/window.hpp"
#include "inference/text/tokenizer.hpp"
#include "inference/vocabulary.hpp"

#include <span>
#include <vector>

namespace parley::inference::duplex {

/// What the model reads between two units.
struct message_rows {
  std::vector<token_id> ids;
  std::vector<window::stretch> parts; ///< of `ids`, in order: messages, or results of functions in a row
};

/// Messages as the chat template writes them (docs/model/thinker.md 5.7). Their text cannot become a control token.
message_rows encode_messages(const tokenizer& tokens, std::span<const text_message> messages);

} // namespace parley::inference::duplex
