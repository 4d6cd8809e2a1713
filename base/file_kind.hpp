#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// Tells the kind of a file from its first bytes. Used wherever clients send sound or pictures, so that an error message
// names the kind before it says what is wrong. Pure.
namespace parley::base {

enum class file_kind : std::uint8_t {
  unknown,
  wav,
  rf64,
  w64,
  aiff,
  caf,
  au,
  flac,
  ogg,
  mp3,
  aac,
  m4a,
  amr,
  midi,
  asf,
  jpeg,
  png,
  webp,
  gif,
  bmp,
  tiff,
  heic,
  avif,
  jxl,
  svg,
  mpeg4,
  matroska,
  avi,
  pdf,
  zip,
  gzip,
};

/// `head`: the first bytes of the file. 64 are enough for most kinds; MP3 and AAC without a tag in front take a few
/// thousand, as two of their frames have to fit together.
file_kind kind_of(std::string_view head);

/// The same for bytes that are samples unless proven otherwise, from the first piece of a stream, which come so often that
/// short marks occur by chance: `unknown` for whatever has no mark of six bytes or more.
file_kind certain_kind_of(std::string_view head);

/// The kind's name for messages, with its article: "an MP3 file", "a HEIC picture".
std::string_view name_of(file_kind kind);

bool is_sound(file_kind kind);
bool is_picture(file_kind kind);

/// Sound may be in it too.
bool is_video(file_kind kind);

/// Without the ID3v2 tags in front, and the zeros that may follow them; all of it if there are none. Empty if a tag is
/// longer than the file.
std::string_view without_id3(std::string_view file);

/// From the first two frames of MPEG sound on that fit together, which may stand a little behind the beginning. Empty if
/// there are none.
std::string_view from_first_frame(std::string_view mp3);

} // namespace parley::base
