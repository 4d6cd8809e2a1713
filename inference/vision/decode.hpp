#pragma once

#include "inference/vision/picture.hpp"

#include <tl/expected.hpp>

#include <functional>
#include <string>
#include <string_view>

// Picture files of strangers -> pixels. The size is read from the header and checked before anything is allocated for
// it; what a file may cost is bounded by `max_side`, whatever it says. All are safe to call from any thread.
namespace parley::inference::vision {

inline constexpr int max_side = 4096; ///< pixels (PROTOCOL.md 3.3)

/// Pixels, or what is wrong with the file in words for the client.
using decoded = tl::expected<picture, std::string>;

/// Asked now and then while a file is being decoded: whether anybody still wants it. Empty = somebody does.
using still_wanted = std::function<bool()>;

/// JPEG, PNG or WebP, told by their first bytes. Colours become RGB as the reference's image library makes them: alpha
/// is dropped and not blended, CMYK is read as Adobe writes it, profiles and EXIF orientation are ignored. Of 16-bit
/// samples the high byte is used.
decoded decode_picture(std::string_view file, const still_wanted& wanted = {});

// One format each, as `decode_picture` reads it.
/// Progressive files of more than 20 scans are refused: each one costs as much as a whole file.
decoded decode_jpeg(std::string_view file, const still_wanted& wanted = {});

/// What is neither pixels nor palette is skipped unread: compressed comments can be a thousand times as long as the file.
decoded decode_png(std::string_view file, const still_wanted& wanted = {});

/// A still picture; animations are refused.
decoded decode_webp(std::string_view file);

/// Nothing, or the objection to a picture of that size.
std::string size_objection(std::int64_t width, std::int64_t height);

} // namespace parley::inference::vision
