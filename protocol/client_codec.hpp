#pragma once

#include "protocol/errors.hpp"
#include "protocol/events.hpp"
#include "protocol/json_document.hpp"

#include <tl/expected.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Client frames -> events, both dialects (PROTOCOL.md 3). In two steps, because the state of a session is checked
// before the content of an event: `peek` checks the JSON and tells the type; one of the `decode_*` then reads the
// fields, base64 and all. All functions are pure and thread-safe.
namespace parley::protocol {

/// The event types of PROTOCOL.md 3; foreign ones too are `unknown`.
enum class client_event_type : std::uint8_t {
  session_init,
  session_update,
  input_append,
  input_audio_buffer_append,
  session_close,
  unknown,
};

/// A JSON object with a string `type`. Views the frame's text: the frame has to outlive it, and may not move.
struct envelope {
  client_event_type type = client_event_type::unknown;
  std::string type_name; ///< as sent, cut to 64 bytes: for messages
  json::document body;
};

/// Why a frame is no event.
struct frame_fault {
  bool not_json = false; ///< close 1003, no error event; otherwise `reason` is sent and the connection stays
  error reason;
};

/// Checks a text frame (valid UTF-8) as a whole and finds its type (PROTOCOL.md 1). No padding is needed behind the
/// text. A frame that is JSON but no event gives missing_field or invalid_payload.
tl::expected<envelope, frame_fault> peek(std::string_view frame);

/// A temporary string would be gone before its envelope is read.
template<std::same_as<std::string> Text>
tl::expected<envelope, frame_fault> peek(Text&& frame) = delete;

// Errors of all decoders below are missing_field or invalid_payload, and name the field.

/// session.init (PROTOCOL.md 3.1). `url_mode` is the mode of the URL, if it has one; else `payload.mode` decides, and
/// `turn_based` is set if it is given. In chat all fields but the system prompt are left unread.
result<init_event> decode_session_init(const envelope& from, std::optional<mode> url_mode);

/// session.update (PROTOCOL.md 3.2) in audio or video.
result<init_event> decode_session_update(const envelope& from, mode kind);

/// input.append (PROTOCOL.md 3.3) or input_audio_buffer.append (3.4), whichever it is, in audio or video. In audio,
/// frames are left unread. Frames are checked to be base64 of JPEG files with a readable header; their pixels are not.
result<append_event> decode_append(const envelope& from, mode kind, std::size_t min_legacy_samples);

/// input.append in chat (PROTOCOL.md 3.5).
result<chat_append_event> decode_chat_append(const envelope& from);

/// session.close (PROTOCOL.md 3.6). Never fails.
close_event decode_close(const envelope& from);

} // namespace parley::protocol
