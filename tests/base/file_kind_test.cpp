#include "base/file_kind.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <string>
#include <utility>
#include <vector>

using namespace parley::base;
using namespace std::string_literals;

namespace {

/// Frames of MPEG-1 layer III, 128 kbit/s at 44.1 kHz: 417 bytes each.
std::string mp3_frames(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += "\xFF\xFB\x90\x64" + std::string(413, 'x');
  return out;
}

std::string tag(std::size_t bytes, std::string inside = {}) {
  inside.resize(bytes, '\0');
  return "ID3\x04\0\0"s +
         std::string{static_cast<char>(bytes >> 21 & 127), static_cast<char>(bytes >> 14 & 127),
                     static_cast<char>(bytes >> 7 & 127), static_cast<char>(bytes & 127)} +
         inside;
}

std::string box(const std::string& brands) {
  return "\0\0\0"s + static_cast<char>(8 + brands.size()) + "ftyp" + brands + "\0\0\0\x08mdat"s;
}

} // namespace

TEST_CASE("a file's first bytes say what it is") {
  const std::vector<std::pair<std::string, file_kind>> all{
      {"RIFF\1\2\3\4WAVEfmt ", file_kind::wav},
      {"RIFF\1\2\3\4WEBPVP8 ", file_kind::webp},
      {"RIFF\1\2\3\4AVI LIST", file_kind::avi},
      {"RF64\xFF\xFF\xFF\xFFWAVEds64", file_kind::rf64},
      {"riff\x2E\x91\xCF\x11\xA5\xD6\x28\xDB\x04\xC1\0\0"s, file_kind::w64},
      {"FORM\0\0\1\2AIFFCOMM"s, file_kind::aiff},
      {"FORM\0\0\1\2AIFCFVER"s, file_kind::aiff},
      {"caff\0\1\0\0desc"s, file_kind::caf},
      {".snd\0\0\0\x18\0\0\1\2"s, file_kind::au},
      {"fLaC\0\0\0\x22\x10"s, file_kind::flac},
      {"OggS\0\2\0\0"s, file_kind::ogg},
      {mp3_frames(2), file_kind::mp3},
      {tag(300) + mp3_frames(2), file_kind::mp3},
      {tag(300), file_kind::mp3},
      {tag(300) + "fLaC\0\0\0\x22\x10"s, file_kind::flac},
      {"\xFF\xF1\x50\x80\x01\x1F\xFC\0\xFF\xF1\x50\x80\x01\x1F\xFC\0"s, file_kind::aac},
      {box("M4A \0\0\2\0M4A mp42"s), file_kind::m4a},
      {"#!AMR\n\x3C", file_kind::amr},
      {"MThd\0\0\0\6\0\1"s, file_kind::midi},
      {"\x30\x26\xB2\x75\x8E\x66\xCF\x11\xA6\xD9", file_kind::asf},
      {"\xFF\xD8\xFF\xE0", file_kind::jpeg},
      {"\x89PNG\r\n\x1A\n", file_kind::png},
      {"GIF89a", file_kind::gif},
      {"BM\x36\1\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"s, file_kind::bmp},
      {"II*\0\x08\0\0\0"s, file_kind::tiff},
      {"MM\0*\0\0\0\x08"s, file_kind::tiff},
      {box("heic\0\0\0\0mif1heic"s), file_kind::heic},
      {box("mif1\0\0\0\0mif1heic"s), file_kind::heic},
      {box("avif\0\0\0\0avifmif1"s), file_kind::avif},
      {box("mif1\0\0\0\0mif1avif"s), file_kind::avif},
      {box("isom\0\0\2\0isomiso2"s), file_kind::mpeg4},
      {box("qt  \0\0\2\0qt  "s), file_kind::mpeg4},
      {"\x1A\x45\xDF\xA3\x9F\x42\x86\x81\x01\x42\x82\x84webm", file_kind::matroska},
      {"%PDF-1.7", file_kind::pdf},
      {"PK\3\4\x14", file_kind::zip},
      {"\x1F\x8B\x08", file_kind::gzip},
  };
  for (const auto& [head, kind] : all) {
    INFO(name_of(kind));
    CHECK(kind_of(head) == kind);
    CHECK(is_sound(kind) + is_picture(kind) + is_video(kind) == (kind < file_kind::pdf ? 1 : 0));
    for (std::size_t bytes = 0; bytes < head.size(); ++bytes) {
      const auto part = kind_of(std::string_view(head).substr(0, bytes)); // reads no further than that
      CHECK((part == kind || part == file_kind::unknown || part == file_kind::mp3 || part == file_kind::mpeg4 ||
             part == file_kind::heic));
    }
  }
}

TEST_CASE("what only looks like a file of a known kind is none") {
  for (const auto& head : {""s, "RIFF"s + std::string(12, '\0'), "fLaCfLaC"s, "OggS\1\2"s, "ID3 is a tag"s,
                           "ID3\x04\0\0\x80\0\0\0"s, mp3_frames(1), mp3_frames(1) + "\xFF\xFB\x94\x64"s,
                           "BM and more of it, a text"s, "\xFF\xFBxx"s, std::string(64, '\xFF')}) {
    INFO(head);
    CHECK(kind_of(head) == file_kind::unknown);
  }
}

TEST_CASE("samples of a stream are taken for a file by a long mark only") {
  CHECK(certain_kind_of(mp3_frames(2)) == file_kind::mp3);
  CHECK(certain_kind_of("RIFF\1\2\3\4WAVEfmt ") == file_kind::wav);
  CHECK(certain_kind_of("\x1A\x45\xDF\xA3\x9F\x42\x86\x81\x01\x42\x82\x84webm") == file_kind::matroska);
  CHECK(certain_kind_of("\x1A\x45\xDF\xA3 and so on") == file_kind::unknown);
  for (const auto& head : {"\xFF\xD8\xFF\xE0"s, "II*\0"s, "\x1F\x8B\x08"s, "PK\3\4"s})
    CHECK(certain_kind_of(head) == file_kind::unknown);
}

TEST_CASE("tags in front of the sound are taken off, however many there are") {
  CHECK(without_id3(tag(20) + tag(0) + "\0\0sound"s) == "sound");
  CHECK(without_id3("sound") == "sound");
  CHECK(without_id3("\0sound"s) == "\0sound"s);
  CHECK(without_id3(tag(100).substr(0, 50)).empty());
  std::string many; // which must not cost a stack
  for (int i = 0; i < 100'000; ++i) many += tag(0) + '\0';
  CHECK(kind_of(many) == file_kind::mp3);
}

TEST_CASE("the first frames of an MP3 may stand a little behind its beginning") {
  const auto frames = mp3_frames(3);
  CHECK(from_first_frame(frames) == frames);
  CHECK(from_first_frame("\xFF\xFBxx" + frames) == frames);
  CHECK(from_first_frame(std::string(60'000, '\xFF') + frames).size() >= frames.size());
  CHECK(from_first_frame(std::string(70'000, 'x') + frames).empty());
  CHECK(from_first_frame(mp3_frames(1)).empty());
  CHECK(from_first_frame("").empty());
}
