#pragma once

#include "inference/vision/picture.hpp"

#include <tl/expected.hpp>

#include <functional>
#include <string>
#include <string_view>

// Decodes clients' picture files. The size is read from the header and checked before memory is allocated for it;
// `max_side` limits the cost of a file, whatever it claims. All functions may be called from any thread.
namespace parley::inference::vision {

inline constexpr int max_side = 4096; ///< pixels (docs/protocol.md 3.3)

/// Pixels, or the problem with the file in words for the client.
using decoded = tl::expected<picture, std::string>;

/// Called from time to time while a file is decoded: whether anybody still wants it. An empty function means yes.
using still_wanted = std::function<bool()>;

/// JPEG, PNG or WebP, recognised by the first bytes. Colours become RGB like in the reference's image library: alpha is
/// dropped and not blended, CMYK is read as Adobe writes it, profiles and EXIF orientation are ignored. Of 16-bit
/// samples only the high byte is used.
decoded decode_picture(std::string_view file, const still_wanted& wanted = {});

// One format each, as `decode_picture` reads it.
/// Progressive files of more than 20 scans are refused, because each scan costs as much as a whole file.
decoded decode_jpeg(std::string_view file, const still_wanted& wanted = {});

/// Skips everything but pixels and palette unread: compressed comments can expand to a thousand times the size of the
/// file.
decoded decode_png(std::string_view file, const still_wanted& wanted = {});

/// For still pictures; animations are refused.
decoded decode_webp(std::string_view file);

/// Why a picture of that size is refused; empty if it is not.
std::string size_objection(std::int64_t width, std::int64_t height);

} // namespace parley::inference::vision
