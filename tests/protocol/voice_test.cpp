#include "protocol/media/voice.hpp"

#include "protocol/media/wav.hpp"
#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

using namespace parley::protocol;
namespace test = parley::protocol::test;

namespace {

result<pcm> decode(const std::string& text) {
  return decode_sound(text, voice_seconds, "v");
}

} // namespace

TEST_CASE("voice: raw float32 and WAV are told apart by the header") {
  auto raw = decode(test::sound(8000));
  REQUIRE(raw);
  CHECK((*raw)->size() == 8000);
  auto wav = decode(test::wav_voice());
  REQUIRE(wav);
  CHECK((*wav)->size() == 8000);
  CHECK((**wav)[4500] == 0.5f);
}

TEST_CASE("voice: raw samples that spell RIFF by chance are samples") {
  auto bytes = "RIFF" + std::string(15'996, '\0'); // reads as a finite float, clamped
  auto decoded = decode(test::to_base64(bytes));
  REQUIRE(decoded);
  CHECK((*decoded)->size() == 4000);
  CHECK((**decoded)[0] == 1.0f);
}

TEST_CASE("voice: a data URL's prefix is dropped") {
  CHECK(decode("data:audio/wav;base64," + test::wav_voice()));
  CHECK(decode("data:;base64," + test::sound(8000)));
  CHECK(without_data_url("data:a/b;c=d;base64,XYZ") == "XYZ");
  CHECK(without_data_url("data:a/b,XYZ") == "data:a/b,XYZ");
  CHECK(without_data_url("XYZ;base64,") == "XYZ;base64,");
}

TEST_CASE("voice: 0.25 to 60 seconds") {
  CHECK(decode(test::sound(4000)));
  CHECK(decode(test::sound(960'000)));
  auto error = [](const result<pcm>& r) { return r ? std::string("decoded") : r.error().message; };
  CHECK(error(decode(test::sound(3999))) == "v: 3999 samples, outside 4000..960000");
  CHECK(error(decode(test::sound(960'001))) == "v: 960001 samples, outside 4000..960000");
  CHECK(error(decode("")) == "v: 0 samples, outside 4000..960000");
  CHECK(error(decode(test::to_base64(test::wav_file({}, std::string(7'000, '\0'))))) ==
        "v: 0.218 s of sound, outside 0.250 s..60.000 s");
  CHECK(error(decode(test::to_base64(test::wav_file({1, 1, 8'000, 8}, std::string(480'008, '\0'))))) ==
        "v: 60.001 s of sound, outside 0.250 s..60.000 s");
  CHECK(error(decode(test::to_base64(test::wav_file({2}, std::string(9'000, '\0'))))).starts_with("v: WAV: format 2"));
  CHECK(error(decode("UklGRg-=")) == "v: not base64 at character 6");
}

TEST_CASE("voice: a file that is too long is refused by its header, before the rest of it is decoded") {
  auto text = test::to_base64(write_wav(std::vector<float>(61 * 16'000), 16'000));
  text[text.size() / 2] = '!';
  CHECK(decode(text).error().message == "v: 61.000 s of sound, outside 0.250 s..60.000 s");
  text = test::to_base64(write_wav(std::vector<float>(59 * 16'000), 16'000));
  text[text.size() / 2] = '!';
  CHECK(decode(text).error().message.find("s of sound") == std::string::npos);
}

TEST_CASE("voice: a frame that may hold a WAV file is known without reading it") {
  CHECK(may_hold_wav(R"({"type":"session.init","payload":{"voice":{"ref_audio":")" + test::wav_voice() + "\"}}}"));
  CHECK(may_hold_wav(R"({"type":"session.init","payload":{"voice":{"ref_audio":"\u0055klGR"}}})"));
  CHECK_FALSE(may_hold_wav(R"({"type":"input.append","input":{"audio":")" + test::sound(16'000) + "\"}}"));
  CHECK_FALSE(may_hold_wav(R"({"text":"\u4f60\u597d"})"));
}
