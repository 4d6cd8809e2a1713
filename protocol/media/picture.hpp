#pragma once

#include "protocol/errors.hpp"
#include "protocol/events.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// Pictures from clients: JPEG files, in chat also PNG and WebP. Only their headers are checked here (docs/protocol.md
// 1, 3.3); decoding the pixels may still fail.
namespace parley::protocol {

inline constexpr std::size_t max_frames = 4;             ///< per append
inline constexpr std::size_t max_image_bytes = 4u << 20; ///< per file, without base64
inline constexpr int max_image_side = 4096;              ///< pixels
inline constexpr int max_slices = 9;                     ///< largest `max_slice_nums`; the smallest is 1

/// In pixels.
struct jpeg_size {
  int width = 0;
  int height = 0;
};

/// The size in a JPEG file's frame header (SOF marker); nothing if the file has none.
std::optional<jpeg_size> read_jpeg_size(std::string_view file);

/// Which formats are accepted: only JPEG in video, all in chat.
enum class picture_kinds { jpeg, jpeg_png_webp };

/// Base64 text, with or without a `data:…;base64,` prefix → the file. Errors are invalid_payload and name `field`.
result<image_file> decode_image(std::string_view base64_text, std::string_view field,
                                picture_kinds taken = picture_kinds::jpeg);

/// What `decode_image` would refuse of a file, in words; empty = nothing.
std::string judge_image(std::string_view file, picture_kinds taken);

} // namespace parley::protocol
