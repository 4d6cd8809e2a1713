#pragma once

#include "protocol/events.hpp"
#include "protocol/realtime/client_event.hpp"
#include "protocol/realtime/items.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace parley::protocol::realtime {

/// One answer as a chat turn of Parley's own protocol: the frame `input.append` (docs/protocol.md 3.5) with `context` as
/// the conversation; of what a camera saw, the newest few. Chat ends with what a user says; where the context does not,
/// one is asked to go on. `voice`: of a spoken answer, a WAV file as base64; empty = the server's own.
std::string encode_chat_turn(const response_request& request, std::span<const item* const> context,
                             std::string_view voice = {});

/// About how many bytes the context adds to that frame. To be asked before anything is encoded: a reference of a few
/// bytes may stand for minutes of sound, and may be repeated.
std::size_t chat_turn_bytes(std::span<const item* const> context);

/// The conversation in words, for the system prompt of a duplex session: who said what, the newest `most_bytes`; of
/// what a camera saw, the newest. Empty if nothing was said.
std::string in_words(std::span<const item> context, std::size_t most_bytes);

/// One item in words, for a duplex session that is running.
text_message in_words(const item& one);

} // namespace parley::protocol::realtime
