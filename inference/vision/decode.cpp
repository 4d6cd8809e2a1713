#include "inference/vision/decode.hpp"

namespace parley::inference::vision {

decoded decode_picture(std::string_view file, const still_wanted& wanted) {
  if (file.empty()) return tl::unexpected<std::string>("an empty file");
  if (file.starts_with("\xFF\xD8\xFF")) return decode_jpeg(file, wanted);
  if (file.starts_with("\x89PNG\r\n\x1A\n")) return decode_png(file, wanted);
  if (file.starts_with("RIFF") && file.size() >= 12 && file.substr(8, 4) == "WEBP") return decode_webp(file);
  return tl::unexpected<std::string>("neither a JPEG, a PNG nor a WebP file");
}

std::string size_objection(std::int64_t width, std::int64_t height) {
  if (width >= 1 && height >= 1 && width <= max_side && height <= max_side) return {};
  return std::to_string(width) + "x" + std::to_string(height) + " pixels, outside 1.." + std::to_string(max_side) +
         " a side";
}

} // namespace parley::inference::vision
