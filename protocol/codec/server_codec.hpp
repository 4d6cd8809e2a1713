#pragma once

#include "protocol/events.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Server events → text frames, in both dialects (docs/protocol.md 4). Pure and thread-safe.
namespace parley::protocol {

/// What determines the text of an event besides the event itself.
struct encode_context {
  dialect spoken = dialect::undecided; ///< undecided: minimal fields, only events common to both dialects
  std::string_view session_id;         ///< in the dialect's own form; empty before `session.created`
  bool legacy_extras = false;          ///< setting `protocol.legacy_extras`: metrics and usage in legacy events too
  double send_time_s = 0;     ///< unix time just before the frame is queued, for `server_send_ts`; 0 = left out
  std::uint64_t event_id = 0; ///< in a session that can be resumed; 0 = left out
};

/// One event as a JSON text. In the legacy dialect an `output_delta` of kind listen becomes response.listen, and any
/// other one response.output_audio.delta with both its `text` and its `audio`: the caller must have merged a step's
/// deltas. Samples are clamped to [-1, 1], NaN becomes silence; malformed UTF-8 in a text becomes U+FFFD. The result is
/// always valid JSON and UTF-8.
std::string encode(const server_event& event, const encode_context& context);

/// About how many bytes `encode` makes of it.
std::size_t about_bytes(const server_event& event);

/// What is reported of tokens, a JSON array as the OpenAI API has it; empty if there are none.
std::string encode_scores(const std::vector<token_score>& scores);

} // namespace parley::protocol
