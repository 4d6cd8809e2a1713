#pragma once

#include "protocol/errors.hpp"
#include "protocol/events.hpp"
#include "protocol/json/document.hpp"

#include <tl/expected.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Client frames → events, in both dialects (docs/protocol.md 3). There are two steps, because a session's state is
// checked before an event's content: `peek` checks the JSON and finds the type; one of the `decode_*` functions then
// reads the fields, including base64. All functions are pure and thread-safe.
namespace parley::protocol {

/// The event types of docs/protocol.md 3; any other is `unknown`.
enum class client_event_type : std::uint8_t {
  session_init,
  session_update,
  input_append,
  input_audio_buffer_append,
  input_standalone,
  input_tool_result,
  session_close,
  unknown,
};

/// A JSON object with a string `type`. It is a view of the frame's text, which must outlive it and may not move.
struct envelope {
  client_event_type type = client_event_type::unknown;
  std::string type_name; ///< as sent, cut to 64 bytes; for error messages
  json::document body;
};

/// Why a frame is not an event.
struct frame_fault {
  bool not_json = false; ///< close with 1003 without an error event; otherwise send `reason` and stay open
  error reason;
};

/// Checks a whole text frame (valid UTF-8) and finds its type (docs/protocol.md 1). The text needs no padding after it.
/// A frame that is JSON but not an event gives missing_field or invalid_payload.
tl::expected<envelope, frame_fault> peek(std::string_view frame);

/// Deleted: a temporary string would be destroyed before its envelope is read.
template<std::same_as<std::string> Text>
tl::expected<envelope, frame_fault> peek(Text&& frame) = delete;

// Errors of all decoders below are missing_field or invalid_payload and name the field.

/// session.init (docs/protocol.md 3.1). `url_mode` is the mode given in the URL, if any; otherwise `payload.mode`
/// decides, and sets `turn_based` if it is given. In chat, all fields but the system prompt and the tools are ignored. `schema_work`:
/// what checking its schemas may take, counted down; null = as much as an event may. `knows_functions`: in `session_limits`.
result<init_event> decode_session_init(const envelope& from, std::optional<mode> url_mode,
                                       std::int64_t* schema_work = nullptr, bool knows_functions = true);

/// session.update (docs/protocol.md 3.2) in audio or video.
result<init_event> decode_session_update(const envelope& from, mode kind);

/// input.append (docs/protocol.md 3.3), input.standalone (17) or input_audio_buffer.append (3.4), in audio or video. In audio, frames are
/// ignored. In video they must be base64 of JPEG files with a readable header; pixels are not checked.
result<append_event> decode_append(const envelope& from, mode kind, std::size_t min_legacy_samples);

/// input.tool_result (docs/protocol.md 17), in audio or video.
result<tool_result_event> decode_tool_result(const envelope& from);

/// input.append in chat (docs/protocol.md 3.5). `schema_work`: as above.
result<chat_append_event> decode_chat_append(const envelope& from, std::int64_t* schema_work = nullptr);

/// session.close (docs/protocol.md 3.6). Never fails.
close_event decode_close(const envelope& from);

// The same for events that never were text, as the current dialect has them: what the decoders would refuse is refused, and
// what they would fill in is filled in. Nothing is copied.
result<init_event> checked(init_event from, mode kind);
result<append_event> checked(append_event from, mode kind);
result<chat_append_event> checked(chat_append_event from);
result<tool_result_event> checked(tool_result_event from);

} // namespace parley::protocol
