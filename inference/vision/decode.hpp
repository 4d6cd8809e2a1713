#pragma once

#include "inference/vision/picture.hpp"

#include <tl/expected.hpp>

#include <functional>
#include <string>
#include <string_view>

// Clients' picture files → pixels. The size is read from the header and checked before anything is allocated for it;
// the cost of a file is limited by `max_side`, whatever it claims. All functions may be called from any thread.
namespace parley::inference::vision {

inline constexpr int max_side = 4096; ///< pixels (docs/protocol.md 3.3)

/// Pixels, or what is wrong with the file in words for the client.
using decoded = tl::expected<picture, std::string>;

/// Called now and then while a file is being decoded: whether anybody still wants it. Empty = yes.
using still_wanted = std::function<bool()>;

/// JPEG, PNG or WebP, recognised by the first bytes. Colours become RGB like in the reference's image library: alpha is
/// dropped and not blended, CMYK is read as Adobe writes it, profiles and EXIF orientation are ignored. Of 16-bit
/// samples the high byte is used.
decoded decode_picture(std::string_view file, const still_wanted& wanted = {});

// One format each, as `decode_picture` reads it.
/// Progressive files of more than 20 scans are refused, because each scan costs as much as a whole file.
decoded decode_jpeg(std::string_view file, const still_wanted& wanted = {});

/// Everything but pixels and palette is skipped unread: compressed comments can be a thousand times as long as the
/// file.
decoded decode_png(std::string_view file, const still_wanted& wanted = {});

/// A still picture; animations are refused.
decoded decode_webp(std::string_view file);

/// Nothing, or the objection to a picture of that size.
std::string size_objection(std::int64_t width, std::int64_t height);

} // namespace parley::inference::vision
