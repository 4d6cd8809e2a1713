#include "protocol/media/sound_file.hpp"

#include "protocol/media/voice.hpp"
#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numbers>
#include <sndfile.h>
#include <span>

using namespace parley::protocol;
namespace base = parley::base;
namespace test = parley::protocol::test;

namespace {

struct memory {
  std::string bytes;
  sf_count_t at = 0;
};

SF_VIRTUAL_IO virtual_io() {
  SF_VIRTUAL_IO io{};
  io.get_filelen = [](void* user) { return static_cast<sf_count_t>(static_cast<memory*>(user)->bytes.size()); };
  io.tell = [](void* user) { return static_cast<memory*>(user)->at; };
  io.read = [](void*, sf_count_t, void*) { return sf_count_t{0}; };
  io.seek = [](sf_count_t by, int from, void* user) {
    auto& to = *static_cast<memory*>(user);
    to.at = by + (from == SEEK_SET ? 0 : from == SEEK_CUR ? to.at : static_cast<sf_count_t>(to.bytes.size()));
    return to.at;
  };
  io.write = [](const void* from, sf_count_t count, void* user) {
    auto& to = *static_cast<memory*>(user);
    const auto end = static_cast<std::size_t>(to.at + count);
    if (to.bytes.size() < end) to.bytes.resize(end);
    std::memcpy(to.bytes.data() + to.at, from, static_cast<std::size_t>(count));
    to.at += count;
    return count;
  };
  return io;
}

/// A file of libsndfile's with the same samples in every channel.
std::string file_of(std::span<const float> samples, int format, int rate = 16'000, int channels = 1) {
  memory to;
  auto io = virtual_io();
  SF_INFO info{};
  info.samplerate = rate;
  info.channels = channels;
  info.format = format;
  SNDFILE* file = sf_open_virtual(&io, SFM_WRITE, &info, &to);
  REQUIRE(file != nullptr);
  std::vector<float> frames;
  frames.reserve(samples.size() * static_cast<std::size_t>(channels));
  for (const float x : samples) frames.insert(frames.end(), static_cast<std::size_t>(channels), x);
  // In pieces: a block that is too large for its stack ends libsndfile's encoder of Vorbis.
  const std::size_t piece = 1024;
  for (std::size_t at = 0; at < samples.size(); at += piece)
    sf_writef_float(file, frames.data() + at * static_cast<std::size_t>(channels),
                    static_cast<sf_count_t>(std::min(piece, samples.size() - at)));
  sf_close(file);
  return to.bytes;
}

std::vector<float> tone(double hertz, double rate, double seconds) {
  std::vector<float> out(static_cast<std::size_t>(rate * seconds));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(0.5 * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / rate));
  return out;
}

double worst(std::span<const float> a, std::span<const float> b) {
  double out = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    out = std::max(out, std::abs(static_cast<double>(a[i]) - b[i]));
  return out;
}

/// How much of the middle second is a tone of that frequency, whatever its phase: 1 = all.
double share_of(double hertz, std::span<const float> sound) {
  double re = 0, im = 0, all = 0;
  for (std::size_t i = 8'000; i < 24'000; ++i) {
    const double turn = 2 * std::numbers::pi * hertz * static_cast<double>(i) / 16'000;
    re += sound[i] * std::cos(turn);
    im += sound[i] * std::sin(turn);
    all += static_cast<double>(sound[i]) * sound[i];
  }
  return (re * re + im * im) / (all * 8'000);
}

std::string refusal(std::string_view file, const wav_options& wanted = {}) {
  const auto read = read_sound(file, wanted);
  return read ? "read" : read.error();
}

constexpr int mp3 = SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III;
constexpr int flac = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
constexpr int vorbis = SF_FORMAT_OGG | SF_FORMAT_VORBIS;
constexpr int opus = SF_FORMAT_OGG | SF_FORMAT_OPUS;

std::string id3(std::size_t bytes) {
  std::string out("ID3\x03\0\0\0\0", 8);
  out += static_cast<char>(bytes >> 7);
  out += static_cast<char>(bytes & 127);
  return out + std::string(bytes, 'x');
}

} // namespace

TEST_CASE("sound file: kinds that lose nothing give their samples") {
  const auto samples = tone(440, 16'000, 0.5);
  for (const int format :
       {flac, SF_FORMAT_AIFF | SF_FORMAT_PCM_16, SF_FORMAT_W64 | SF_FORMAT_PCM_16, SF_FORMAT_RF64 | SF_FORMAT_PCM_16,
        SF_FORMAT_CAF | SF_FORMAT_PCM_16, SF_FORMAT_AU | SF_FORMAT_PCM_16, SF_FORMAT_AIFF | SF_FORMAT_FLOAT,
        SF_FORMAT_OGG | SF_FORMAT_PCM_16, SF_FORMAT_WAV | SF_FORMAT_DOUBLE, SF_FORMAT_WAVEX | SF_FORMAT_PCM_24})
    for (const int channels : {1, 2}) {
      INFO(std::hex << format << " " << channels);
      SF_INFO possible{0, 16'000, channels, format, 0, 0};
      if (sf_format_check(&possible) == 0) continue; // Ogg has no PCM here
      const auto file = file_of(samples, format, 16'000, channels);
      CHECK(is_readable_sound(base::kind_of(file)));
      const auto read = read_sound(file);
      REQUIRE(read);
      REQUIRE(read->size() == samples.size());
      CHECK(worst(*read, samples) < 1e-4);
    }
}

TEST_CASE("sound file: kinds that are made for the ear sound the same, at any rate") {
  for (const int format : {mp3, vorbis, opus})
    for (const int rate : {16'000, 24'000, 48'000})
      for (const int channels : {1, 2}) {
        CAPTURE(format, rate, channels);
        const auto read = read_sound(file_of(tone(1000, rate, 2), format, rate, channels));
        REQUIRE(read);
        CHECK(std::abs(static_cast<double>(read->size()) - 32'000) < 3'000); // MP3 has whole frames
        CHECK(share_of(1000, *read) > 0.99);
        CHECK(share_of(700, *read) < 0.01);
      }
  CHECK(share_of(1000, *read_sound(file_of(tone(1000, 44'100, 2), mp3, 44'100))) > 0.99);
  CHECK(share_of(1000, *read_sound(id3(500) + id3(20) + file_of(tone(1000, 44'100, 2), mp3, 44'100))) > 0.99);
  CHECK(read_sound(id3(500) + file_of(tone(1000, 16'000, 2), flac))->size() == 32'000);
}

TEST_CASE("sound file: WAV of telephones is heard") {
  const auto samples = tone(440, 8'000, 1);
  for (const int coding : {SF_FORMAT_ULAW, SF_FORMAT_ALAW}) {
    const auto read = read_sound(file_of(samples, SF_FORMAT_WAV | coding, 8'000), {.rate = 8'000});
    REQUIRE(read);
    REQUIRE(read->size() == samples.size());
    CHECK(worst(*read, samples) < 0.02); // of 0.5; 1/32 of a sample at most
  }
  CHECK(
      refusal(file_of(samples, SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, 8'000)).starts_with("WAV: format 17 (IMA ADPCM)"));
}

TEST_CASE("sound file: what is too long is told before it is decoded, or as soon as it is") {
  const wav_options voice{16'000, 0.25, 60};
  for (const int format : {mp3, flac, vorbis, opus, SF_FORMAT_AIFF | SF_FORMAT_PCM_16}) {
    CAPTURE(format);
    CHECK_THAT(refusal(file_of(std::vector<float>(16'000 * 61), format), voice),
               Catch::Contains(" s of sound, outside 0.250 s..60.000 s") && Catch::StartsWith("a"));
    CHECK_THAT(refusal(file_of(std::vector<float>(1'000), format), voice), Catch::Contains(" s of sound, outside"));
    CHECK(refusal(file_of(std::vector<float>(16'000), format), voice) == "read");
  }
  // A header that claims less than there is, or nothing: four bits and a word of STREAMINFO (RFC 9639 8.2).
  auto bomb = file_of(std::vector<float>(16'000 * 61), flac);
  bomb[21] = static_cast<char>(bomb[21] & 0xF0);
  std::fill_n(bomb.begin() + 22, 4, '\0');
  CHECK_THAT(refusal(bomb, voice), Catch::Contains(" s of sound, outside 0.250 s..60.000 s"));
  CHECK(bomb.size() < 10'000);
}

TEST_CASE("sound file: a second that is too many samples is not decoded") {
  const std::vector<float> silence(1'000);
  CHECK(refusal(file_of(silence, flac, 48'000, 8)) == "read");
  CHECK(refusal(file_of(silence, flac, 192'000, 2)) == "read");
  CHECK(refusal(file_of(silence, flac, 96'000, 8)) ==
        "a FLAC file of 8 channels at 96000 Hz; at most 384000 samples a second are decoded");
  CHECK_THAT(refusal(file_of(silence, SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 500'000)),
             Catch::Contains("1 channels at 500000 Hz"));
}

TEST_CASE("sound file: what is broken, or no sound that is read, is told by its kind") {
  CHECK_THAT(refusal("OggS\0\2 and no more of it"), Catch::StartsWith("WAV: no RIFF/WAVE header"));
  const std::string ogg("OggS\0\2", 6);
  CHECK_THAT(refusal(ogg + std::string(100, 'x')), Catch::StartsWith("an Ogg file that cannot be decoded: "));
  CHECK_THAT(refusal(std::string("fLaC\0\0\0\x22", 8) + std::string(100, 'x')),
             Catch::StartsWith("a FLAC file that cannot be decoded"));
  CHECK(refusal("\x89PNG\r\n\x1a\n") == "a PNG picture; of sound, WAV, MP3, Ogg, FLAC and AIFF are read");
  CHECK(refusal("#!AMR\n") == "an AMR file; of sound, WAV, MP3, Ogg, FLAC and AIFF are read");
  CHECK_THAT(refusal(std::string("\x1A\x45\xDF\xA3\x42\x82webm")), Catch::StartsWith("a WebM or Matroska file; "));
  // Only tags: no sound of any other kind may hide behind them.
  CHECK_THAT(refusal(id3(50) + file_of(tone(440, 16'000, 1), SF_FORMAT_IRCAM | SF_FORMAT_PCM_16)),
             Catch::StartsWith("an MP3 file "));
  CHECK_THAT(refusal(id3(50)), Catch::StartsWith("an MP3 file that cannot be decoded"));
  CHECK(refusal(file_of(tone(440, 16'000, 1), SF_FORMAT_AIFF | SF_FORMAT_IMA_ADPCM)) ==
        "an AIFF file in a coding that is not read");
  std::vector<float> numbers(2'000, 0.1f);
  numbers[700] = std::nanf("");
  CHECK_THAT(refusal(file_of(numbers, SF_FORMAT_W64 | SF_FORMAT_FLOAT)),
             Catch::StartsWith("a W64 file, whose sample 700 is not finite"));
}

TEST_CASE("sound file: every cut of a file is read or refused") {
  for (const int format :
       {mp3, flac, vorbis, opus, SF_FORMAT_AIFF | SF_FORMAT_PCM_16, SF_FORMAT_RF64 | SF_FORMAT_PCM_24}) {
    const auto file = file_of(tone(440, 16'000, 0.2), format);
    for (std::size_t size = 0; size < file.size(); size += 7) {
      const auto read = read_sound(std::string_view(file).substr(0, size));
      if (read) CHECK(read->size() < 6'000);
    }
  }
}

TEST_CASE("sound file: in a message, as a voice, with a prefix and in lines") {
  const auto text = test::to_base64(file_of(tone(1000, 24'000, 2), mp3, 24'000));
  const auto heard = decode_sound("data:audio/mpeg;base64," + text, voice_seconds, "v");
  REQUIRE(heard);
  CHECK(share_of(1000, **heard) > 0.99);
  CHECK_FALSE(seconds_of_sound(text));
  std::string lines;
  for (std::size_t at = 0; at < text.size(); at += 76) lines += text.substr(at, 76) + "\r\n";
  const auto again = decode_sound(lines, voice_seconds, "v");
  REQUIRE(again);
  CHECK(**again == **heard);
  const auto refused = decode_sound(test::to_base64("\x89PNG\r\n\x1a\n and more"), voice_seconds, "v");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "v: a PNG picture; of sound, WAV, MP3, Ogg, FLAC and AIFF are read");
}

TEST_CASE("sound file: frames that may hold much sound in few bytes are known") {
  const auto frame = [](std::string_view data) {
    return R"({"type":"input.append","x":")" + std::string(data) + "\"}";
  };
  const std::vector<float> silence(16'000);
  for (const int format : {mp3, flac, vorbis, opus}) {
    auto text = test::to_base64(file_of(tone(440, 16'000, 1), format));
    CHECK(may_hold_coded_sound(frame(text)));
    CHECK(may_hold_coded_sound(frame("data:audio/x;base64," + text)));
    CHECK(may_hold_coded_sound(frame(R"(data:audio\/x;base64,)" + text)));
    CHECK(may_hold_coded_sound(frame(" \\n" + text)));
    CHECK(may_hold_coded_sound(frame(text.substr(0, 2) + "\\r\\n" + text.substr(2))));
    CHECK(may_hold_coded_sound(frame("\\u00" + text)));
    std::string escaped;
    for (const char c : text) escaped += c == '/' ? "\\/" : std::string(1, c);
    CHECK(may_hold_coded_sound(frame(escaped)));
    CHECK(may_hold_coded_sound(frame(test::to_base64(id3(30)) + text)));
  }
  CHECK_FALSE(may_hold_coded_sound(frame(test::sound(16'000))));
  CHECK_FALSE(may_hold_coded_sound(frame(test::to_base64(test::wav_file({}, std::string(3'000, 'x'))))));
  CHECK_FALSE(may_hold_coded_sound(frame("You are a friend who answers in one sentence. " + std::string(500, 'x'))));
  CHECK_FALSE(may_hold_coded_sound(frame("data:image/jpeg;base64," + test::to_base64(test::jpeg_file(64, 64, 500)))));
  CHECK_FALSE(may_hold_coded_sound("\"\"\"\"\\"));
}
