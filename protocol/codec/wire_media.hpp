#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

// Frames of both directions and dialects without what is large or secret in them, for recordings (docs/protocol.md 13).
namespace parley::protocol {

/// What is taken out of a frame.
enum class media_kind {
  sound,   ///< speech, of a delta or an append
  voice,   ///< a reference recording
  picture, ///< an image file
  text,    ///< any other string longer than `longest_text_kept`
  secret,  ///< anything whose name is that of a key or token
};

inline constexpr std::size_t longest_text_kept = 256u << 10; ///< bytes

/// What replaces a medium in the frame: a JSON text without line breaks. `content` is the meaning of the string, base64
/// or not.
using media_keeper = std::function<std::string(media_kind kind, std::string_view content)>;

/// The frame on one line, with every medium replaced by what `keep` returns for it, called in the order of the frame.
/// Everything else stays as received. Nothing if the frame is not JSON that the wire accepts.
std::optional<std::string> separate_media(std::string_view frame, const media_keeper& keep);

} // namespace parley::protocol
