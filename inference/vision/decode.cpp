#include "inference/vision/decode.hpp"

#include "conversation/image_format.hpp"

namespace parley::inference::vision {

decoded decode_picture(std::string_view file, const still_wanted& wanted) {
  if (file.empty()) return tl::unexpected<std::string>("an empty file");
  switch (conversation::format_of(file)) {
  case conversation::image_format::jpeg: return decode_jpeg(file, wanted);
  case conversation::image_format::png: return decode_png(file, wanted);
  case conversation::image_format::webp: return decode_webp(file);
  case conversation::image_format::unknown: break;
  }
  return tl::unexpected<std::string>("neither a JPEG, a PNG nor a WebP file");
}

std::string size_objection(std::int64_t width, std::int64_t height) {
  if (width >= 1 && height >= 1 && width <= max_side && height <= max_side) return {};
  return std::to_string(width) + "x" + std::to_string(height) + " pixels, outside 1.." + std::to_string(max_side) +
         " a side";
}

} // namespace parley::inference::vision
