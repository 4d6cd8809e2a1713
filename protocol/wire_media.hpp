#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

// Frames of both directions and dialects without what is large or secret in them, for recordings (PROTOCOL.md 13).
namespace parley::protocol {

/// What is taken out of a frame.
enum class media_kind {
  sound,   ///< what a side says: a delta's or an append's
  voice,   ///< a reference recording
  picture, ///< an image file
  text,    ///< any other string longer than `longest_text_kept`
  secret,  ///< what goes by the name of a key or token
};

inline constexpr std::size_t longest_text_kept = 256u << 10; ///< bytes

/// What stands in the frame's place for a medium: a JSON text without line breaks. `content` is what the
/// string means, base64 or not.
using media_keeper = std::function<std::string(media_kind kind, std::string_view content)>;

/// The frame in one line with every medium replaced by what `keep` gives for it, called in the order of the frame. All
/// else stays as it came. Nothing if the frame is no JSON that the wire takes.
std::optional<std::string> separate_media(std::string_view frame, const media_keeper& keep);

} // namespace parley::protocol
