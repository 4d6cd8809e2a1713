#pragma once

#include "base/file_kind.hpp"

#include <cstdint>
#include <string_view>

namespace parley::conversation {

/// The kinds of image files that a conversation may contain.
enum class image_format : std::uint8_t { unknown, jpeg, png, webp };

/// Judged by the file's first bytes alone.
inline image_format format_of(std::string_view file) {
  switch (base::kind_of(file)) {
  case base::file_kind::jpeg: return image_format::jpeg;
  case base::file_kind::png: return image_format::png;
  case base::file_kind::webp: return image_format::webp;
  default: return image_format::unknown;
  }
}

} // namespace parley::conversation
