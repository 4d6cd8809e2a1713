#pragma once

#include <cstdint>
#include <string_view>

namespace parley::conversation {

/// The kinds of image files that a conversation may contain.
enum class image_format : std::uint8_t { unknown, jpeg, png, webp };

/// Judged by the file's first bytes alone.
constexpr image_format format_of(std::string_view file) {
  if (file.starts_with("\xFF\xD8\xFF")) return image_format::jpeg;
  if (file.starts_with("\x89PNG\r\n\x1A\n")) return image_format::png;
  if (file.size() >= 12 && file.starts_with("RIFF") && file.substr(8, 4) == "WEBP") return image_format::webp;
  return image_format::unknown;
}

} // namespace parley::conversation
