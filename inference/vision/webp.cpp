#include "inference/vision/decode.hpp"

#include <webp/decode.h>

namespace parley::inference::vision {

decoded decode_webp(std::string_view file) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  WebPBitstreamFeatures header;
  if (WebPGetFeatures(bytes, file.size(), &header) != VP8_STATUS_OK)
    return tl::unexpected<std::string>("not a readable WebP file");
  if (header.has_animation) return tl::unexpected<std::string>("an animated WebP file");
  if (auto why = size_objection(header.width, header.height); !why.empty()) return tl::unexpected(why);
  picture result{header.width, header.height, {}};
  auto stride = std::size_t{3} * static_cast<std::size_t>(header.width);
  result.rgb.resize(stride * static_cast<std::size_t>(header.height));
  if (!WebPDecodeRGBInto(bytes, file.size(), result.rgb.data(), result.rgb.size(), static_cast<int>(stride)))
    return tl::unexpected<std::string>("not a readable WebP file: broken or cut short");
  return result;
}

} // namespace parley::inference::vision
