#include "protocol/media/picture.hpp"

#include "base/file_kind.hpp"
#include "protocol/media/base64.hpp"
#include "protocol/media/voice.hpp"

namespace parley::protocol {
namespace {

constexpr std::string_view start_of_image = "\xFF\xD8\xFF";

int big_endian16(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]) * 256 + static_cast<unsigned char>(bytes[at + 1]);
}

/// SOF0 to SOF15, except for the three codes among them with another meaning (DHT, JPG, DAC).
bool is_frame_header(int marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

/// Markers without a length: TEM and RST0 to SOI.
bool stands_alone(int marker) {
  return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
}

base::file_kind kind_of(std::string_view base64_text) {
  constexpr std::size_t characters = 4096;
  const auto head = base64::decode(base64_text.substr(0, characters));
  return head ? base::kind_of(*head) : base::file_kind::unknown;
}

bool is_taken(base::file_kind kind, picture_kinds taken) {
  using enum base::file_kind;
  return kind == jpeg || (taken == picture_kinds::jpeg_png_webp && (kind == png || kind == webp));
}

/// Why a file of that kind is not taken; empty if it is, or if nothing is known of it.
std::string refusal_of(base::file_kind kind, picture_kinds taken) {
  if (kind == base::file_kind::unknown || is_taken(kind, taken)) return {};
  if (base::is_video(kind)) return "a video file; send its frames as JPEG pictures, and its sound beside them";
  std::string out(base::name_of(kind));
  if (!base::is_picture(kind)) return out + ", no picture";
  return out + (taken == picture_kinds::jpeg ? ", not a JPEG file" : "; JPEG, PNG and WebP are read");
}

std::string judge_size(std::size_t bytes) {
  if (bytes <= max_image_bytes) return {};
  return std::to_string(bytes) + " bytes, at most " + std::to_string(max_image_bytes) + " are allowed";
}

/// By its kind and, of a JPEG file, its header.
std::string judge_content(std::string_view file, base::file_kind kind, picture_kinds taken) {
  if (kind == base::file_kind::unknown)
    return taken == picture_kinds::jpeg ? "not a JPEG file" : "neither a JPEG, a PNG nor a WebP file";
  if (kind != base::file_kind::jpeg) return {};
  const auto size = read_jpeg_size(file);
  if (!size) return "a JPEG file without a frame header";
  if (size->width >= 1 && size->height >= 1 && size->width <= max_image_side && size->height <= max_image_side)
    return {};
  return std::to_string(size->width) + "x" + std::to_string(size->height) + " pixels, outside 1.." +
         std::to_string(max_image_side) + " a side";
}

} // namespace

std::optional<jpeg_size> read_jpeg_size(std::string_view file) {
  if (!file.starts_with(start_of_image)) return {};
  for (std::size_t at = 2; at + 4 <= file.size();) {
    if (file[at] != '\xFF') return {};
    auto marker = static_cast<unsigned char>(file[at + 1]);
    if (marker == 0xFF) { // fill byte
      ++at;
    } else if (stands_alone(marker)) {
      at += 2;
    } else if (is_frame_header(marker)) {
      if (at + 9 > file.size()) return {};
      return jpeg_size{big_endian16(file, at + 7), big_endian16(file, at + 5)};
    } else if (marker == 0xDA || marker == 0xD9 ||
               marker == 0x00) { // image data or the end of the file, but no frame header yet
      return {};
    } else {
      auto length = big_endian16(file, at + 2);
      if (length < 2) return {};
      at += 2 + static_cast<std::size_t>(length);
    }
  }
  return {};
}

result<image_file> decode_image(std::string_view base64_text, std::string_view field, picture_kinds taken) {
  if (const auto lines = base64::joined(base64_text)) return decode_image(*lines, field, taken);
  auto text = without_data_url(base64_text);
  auto bytes = base64::decoded_size(text);
  if (!bytes) return invalid(field, base64::fault(text));
  const auto kind = kind_of(text);
  if (auto why = refusal_of(kind, taken); !why.empty()) return invalid(field, why);
  if (auto why = judge_size(*bytes); !why.empty()) return invalid(field, why);
  auto file = base64::decode(text);
  if (!file) return invalid(field, base64::fault(text));
  if (auto why = judge_content(*file, kind, taken); !why.empty()) return invalid(field, why);
  return std::make_shared<const std::string>(std::move(*file));
}

std::string judge_image(std::string_view file, picture_kinds taken) {
  constexpr std::size_t mark_bytes = 3072; // as much as decode_image looks at
  const auto kind = base::kind_of(file.substr(0, mark_bytes));
  if (auto why = refusal_of(kind, taken); !why.empty()) return why;
  if (auto why = judge_size(file.size()); !why.empty()) return why;
  return judge_content(file, kind, taken);
}

} // namespace parley::protocol
