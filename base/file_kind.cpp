#include "base/file_kind.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace parley::base {
namespace {

using enum file_kind;
using namespace std::string_view_literals;

unsigned byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

std::size_t big_endian32(std::string_view bytes, std::size_t at) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < 4; ++i) out = out << 8 | byte_at(bytes, at + i);
  return out;
}

bool has(std::string_view bytes, std::size_t at, std::string_view what) {
  return bytes.size() >= at + what.size() && bytes.substr(at, what.size()) == what;
}

constexpr std::size_t id3_header = 10;

/// The bytes of the ID3v2 tag with which the file begins (id3.org, 2.4.0, 3.1).
std::optional<std::size_t> id3_bytes(std::string_view file) {
  if (file.size() < id3_header || !file.starts_with("ID3")) return std::nullopt;
  if (byte_at(file, 3) < 2 || byte_at(file, 3) > 4 || byte_at(file, 4) == 0xFF) return std::nullopt;
  std::size_t bytes = 0;
  for (std::size_t i = 6; i < id3_header; ++i) {
    if (byte_at(file, i) >= 0x80) return std::nullopt;
    bytes = bytes << 7 | byte_at(file, i);
  }
  const bool footer = (byte_at(file, 5) & 0x10) != 0;
  return id3_header + bytes + (footer ? id3_header : 0);
}

/// The length of a frame of MPEG sound (ISO 11172-3 2.4.1.3, ISO 13818-3 2.4.1.3); nothing if it is no header of one.
std::optional<std::size_t> mpeg_frame_bytes(std::string_view at) {
  if (at.size() < 4 || byte_at(at, 0) != 0xFF || (byte_at(at, 1) & 0xE0) != 0xE0) return std::nullopt;
  const unsigned version = byte_at(at, 1) >> 3 & 3; // 0 = 2.5, 2 = 2, 3 = 1
  const unsigned layer = 4 - (byte_at(at, 1) >> 1 & 3);
  const unsigned rate_index = byte_at(at, 2) >> 4;
  const unsigned sampling = byte_at(at, 2) >> 2 & 3;
  const unsigned padding = byte_at(at, 2) >> 1 & 1;
  if (version == 1 || layer == 4 || rate_index == 0 || rate_index == 15 || sampling == 3) return std::nullopt;
  constexpr std::array<std::array<unsigned, 15>, 5> kbits{{
      {0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
      {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
      {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
      {0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
      {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
  }};
  constexpr std::array<unsigned, 3> hertz{44'100, 48'000, 32'000};
  const unsigned rate = hertz[sampling] >> (version == 3 ? 0 : version == 2 ? 1 : 2);
  const unsigned bits = 1000 * kbits[version == 3 ? layer - 1 : layer == 1 ? 3 : 4][rate_index];
  if (layer == 1) return (12 * bits / rate + padding) * 4;
  return (layer == 3 && version != 3 ? 72 : 144) * bits / rate + padding;
}

/// The length of a frame of AAC in ADTS (ISO 13818-7 6.2).
std::optional<std::size_t> adts_frame_bytes(std::string_view at) {
  constexpr std::size_t header = 7;
  if (at.size() < header || byte_at(at, 0) != 0xFF || (byte_at(at, 1) & 0xF6) != 0xF0) return std::nullopt;
  if ((byte_at(at, 2) >> 2 & 15) > 12) return std::nullopt;
  const std::size_t bytes = (byte_at(at, 3) & 3) << 11 | byte_at(at, 4) << 3 | byte_at(at, 5) >> 5;
  if (bytes < header) return std::nullopt;
  return bytes;
}

/// Two frames, one behind the other, whose headers agree on all but what changes from frame to frame.
template<class FrameBytes>
bool are_frames(std::string_view head, FrameBytes bytes_of, unsigned same_in_third) {
  const auto first = bytes_of(head);
  if (!first || head.size() < *first + 4) return false;
  const auto next = head.substr(*first);
  return bytes_of(next.substr(0, 16)) && byte_at(head, 1) == byte_at(next, 1) &&
         (byte_at(head, 2) & same_in_third) == (byte_at(next, 2) & same_in_third);
}

/// MPEG-4 and its relatives, which name themselves by the brands in the first box (ISO 14496-12 4.3).
file_kind kind_of_brands(std::string_view head) {
  const auto box = head.substr(0, std::min<std::size_t>(big_endian32(head, 0), 256));
  const auto major = box.substr(8, 4);
  if (major == "M4A "sv || major == "M4B "sv || major == "M4P "sv || major == "F4A "sv) return m4a;
  // The major brand may be that of the structure alone (mif1), so all of them count.
  bool heif = false;
  for (std::size_t at = 8; at + 4 <= box.size(); at += 4) {
    if (at == 12) continue; // the version
    const auto brand = box.substr(at, 4);
    if (brand == "avif"sv || brand == "avis"sv) return avif;
    constexpr std::array names{"heic"sv, "heix"sv, "heim"sv, "heis"sv, "hevc"sv,
                               "hevx"sv, "hevm"sv, "hevs"sv, "mif1"sv, "msf1"sv};
    heif = heif || std::find(names.begin(), names.end(), brand) != names.end();
  }
  return heif ? heic : mpeg4;
}

struct mark {
  file_kind kind;
  std::string_view bytes; ///< with which such files begin
};

constexpr std::array marks{
    mark{caf, "caff\0\1"sv},
    mark{w64, "riff\x2E\x91\xCF\x11\xA5\xD6\x28\xDB\x04\xC1\0\0"sv},
    mark{flac, "fLaC\0\0\0\x22"sv},
    mark{flac, "fLaC\x80\0\0\x22"sv},
    mark{amr, "#!AMR\n"sv},
    mark{amr, "#!AMR-WB\n"sv},
    mark{midi, "MThd\0\0\0\6"sv},
    mark{asf, "\x30\x26\xB2\x75\x8E\x66\xCF\x11"sv},
    mark{jpeg, "\xFF\xD8\xFF"sv},
    mark{png, "\x89PNG\r\n\x1A\n"sv},
    mark{gif, "GIF87a"sv},
    mark{gif, "GIF89a"sv},
    mark{tiff, "II*\0"sv},
    mark{tiff, "MM\0*"sv},
    mark{jxl, "\0\0\0\x0CJXL \r\n\x87\n"sv},
    mark{svg, "<svg"sv},
    mark{matroska, "\x1A\x45\xDF\xA3"sv},
    mark{pdf, "%PDF-"sv},
    mark{zip, "PK\3\4"sv},
    mark{gzip, "\x1F\x8B\x08"sv},
};

/// Chunks that begin with a name, a length and another name.
file_kind kind_of_chunks(std::string_view head) {
  if (head.size() < 12) return unknown;
  const auto form = head.substr(8, 4);
  if (head.starts_with("RIFF"))
    return form == "WAVE"sv ? wav : form == "WEBP"sv ? webp : form == "AVI "sv ? avi : unknown;
  if (head.starts_with("RF64") && form == "WAVE"sv) return rf64;
  if (head.starts_with("FORM") && (form == "AIFF"sv || form == "AIFC"sv)) return aiff;
  if (head.starts_with(".snd"))
    return byte_at(head, 4) == 0 && byte_at(head, 5) == 0 && big_endian32(head, 4) >= 24 ? au : unknown;
  if (has(head, 0, "\0\0"sv) && has(head, 4, "ftyp"sv)) return kind_of_brands(head);
  return unknown;
}

bool is_bmp(std::string_view head) {
  constexpr std::array<unsigned, 7> headers{12, 40, 52, 56, 64, 108, 124};
  return head.size() >= 18 && head.starts_with("BM") && has(head, 6, "\0\0\0\0"sv) && has(head, 15, "\0\0\0"sv) &&
         std::find(headers.begin(), headers.end(), byte_at(head, 14)) != headers.end();
}

struct naming {
  file_kind kind;
  std::string_view name;
};

constexpr std::array names{
    naming{wav, "a WAV file"},        naming{rf64, "an RF64 file"},
    naming{w64, "a W64 file"},        naming{aiff, "an AIFF file"},
    naming{caf, "a CAF file"},        naming{au, "an AU file"},
    naming{flac, "a FLAC file"},      naming{ogg, "an Ogg file"},
    naming{mp3, "an MP3 file"},       naming{aac, "an AAC file"},
    naming{m4a, "an M4A file"},       naming{amr, "an AMR file"},
    naming{midi, "a MIDI file"},      naming{asf, "a WMA or WMV file"},
    naming{jpeg, "a JPEG picture"},   naming{png, "a PNG picture"},
    naming{webp, "a WebP picture"},   naming{gif, "a GIF picture"},
    naming{bmp, "a BMP picture"},     naming{tiff, "a TIFF picture"},
    naming{heic, "a HEIC picture"},   naming{avif, "an AVIF picture"},
    naming{jxl, "a JPEG XL picture"}, naming{svg, "an SVG picture"},
    naming{mpeg4, "an MP4 file"},     naming{matroska, "a WebM or Matroska file"},
    naming{avi, "an AVI file"},       naming{pdf, "a PDF file"},
    naming{zip, "a ZIP archive"},     naming{gzip, "a gzip file"},
};

file_kind kind_of_untagged(std::string_view head) {
  for (const mark& each : marks)
    if (head.starts_with(each.bytes)) return each.kind;
  if (const auto kind = kind_of_chunks(head); kind != unknown) return kind;
  if (head.size() >= 6 && has(head, 0, "OggS\0"sv) && byte_at(head, 5) < 8) return ogg;
  if (is_bmp(head)) return bmp;
  if (are_frames(head, mpeg_frame_bytes, 0x0C)) return mp3;
  if (are_frames(head, adts_frame_bytes, 0xFC)) return aac;
  return unknown;
}

} // namespace

file_kind kind_of(std::string_view head) {
  if (!id3_bytes(head)) return kind_of_untagged(head);
  const auto rest = kind_of_untagged(without_id3(head));
  return is_sound(rest) ? rest : mp3;
}

file_kind certain_kind_of(std::string_view head) {
  const auto kind = kind_of(head);
  if (kind == matroska) {
    const auto named = head.substr(0, 64);
    return named.find("webm") != std::string_view::npos || named.find("matroska") != std::string_view::npos ? kind
                                                                                                            : unknown;
  }
  return is_sound(kind) || kind == mpeg4 ? kind : unknown;
}

std::string_view name_of(file_kind kind) {
  const auto found = std::find_if(names.begin(), names.end(), [&](const naming& each) { return each.kind == kind; });
  return found == names.end() ? "a file of no kind that is known here" : found->name;
}

bool is_sound(file_kind kind) {
  return kind >= wav && kind <= asf;
}

bool is_picture(file_kind kind) {
  return kind >= jpeg && kind <= svg;
}

bool is_video(file_kind kind) {
  return kind >= mpeg4 && kind <= avi;
}

std::string_view without_id3(std::string_view file) {
  bool tagged = false;
  while (const auto bytes = id3_bytes(file)) {
    tagged = true;
    file.remove_prefix(std::min(*bytes, file.size()));
  }
  if (tagged) file.remove_prefix(std::min(file.find_first_not_of('\0'), file.size()));
  return file;
}

std::string_view from_first_frame(std::string_view mp3) {
  constexpr std::size_t most_before = 64u << 10;
  for (std::size_t at = 0; at < std::min(mp3.size(), most_before); ++at) {
    at = mp3.find('\xFF', at);
    if (at == std::string_view::npos || at >= most_before) break;
    if (are_frames(mp3.substr(at), mpeg_frame_bytes, 0x0C)) return mp3.substr(at);
  }
  return {};
}

} // namespace parley::base
