#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

// Removes large or secret contents from frames of both directions and dialects, for recordings (docs/protocol.md 13).
namespace parley::protocol {

/// The kinds of contents that are removed.
enum class media_kind {
  sound,   ///< speech in a delta or an append
  voice,   ///< a reference recording
  picture, ///< an image file
  text,    ///< any other string longer than `longest_text_kept`
  secret,  ///< anything named like a key or token
};

inline constexpr std::size_t longest_text_kept = 256u << 10; ///< in bytes

/// Returns what replaces a medium in the frame: a JSON text without line breaks. `content`: the decoded JSON string.
using media_keeper = std::function<std::string(media_kind kind, std::string_view content)>;

/// The frame on one line, with every medium replaced by the result of `keep`, which is called in the order of the
/// frame. Everything else stays as received. Nothing if the wire would not accept the frame as JSON.
std::optional<std::string> separate_media(std::string_view frame, const media_keeper& keep);

} // namespace parley::protocol
