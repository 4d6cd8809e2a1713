#pragma once

#include <optional>
#include <string>
#include <string_view>

// A client's frame in fewer bytes, without any loss: long base64 strings are kept as the bytes that they encode, and
// sound whose samples were 16-bit numbers as such. Pure.
namespace parley::actors {

std::string compact_frame(std::string_view text);

/// The text of which `compact_frame` made these bytes; nothing if they are not such. At most eight times as long.
std::optional<std::string> expand_frame(std::string_view bytes);

} // namespace parley::actors
