#include "base/wav.hpp"

#include <catch2/catch.hpp>

using namespace parley::base;

// What is refused, and why, is tested together with the reader of whole files: tests/protocol/wav_test.cpp.

TEST_CASE("a header leads to the sound behind it") {
  const std::string data("\x00\x80\xFF\x7F\x00\x40", 6); // −32768, 32767, 16384
  const auto header = wav_header(24'000, static_cast<std::uint32_t>(data.size()));
  const std::string file = std::string(header.data(), header.size()) + data;
  std::string problem;
  const auto sound = view_wav(file, problem);
  REQUIRE(sound);
  CHECK(problem.empty());
  CHECK(sound->format.rate == 24'000);
  CHECK(sound->format.channels == 1);
  CHECK(sound->data_at == wav_header_bytes);
  CHECK(sound->data_bytes == 6);
  REQUIRE(sound->frames() == 3);
  CHECK(sound->sample(0, 0) == -1.0f);
  CHECK(sound->sample(1, 0) == 32767.0f / 32768.0f);
  CHECK(sound->sample(2, 0) == 0.5f);
}

TEST_CASE("a file that is cut off gives what is there, or says what is missing") {
  const auto header = wav_header(16'000, 100);
  const std::string file = std::string(header.data(), header.size()) + std::string(51, '\0');
  for (std::size_t size = 0; size <= file.size(); ++size) {
    std::string problem;
    const auto sound = view_wav(std::string_view(file).substr(0, size), problem);
    CHECK(sound.has_value() == (size >= wav_header_bytes));
    CHECK(problem.empty() == sound.has_value());
    if (sound) CHECK(sound->frames() == (size - wav_header_bytes) / 2);
  }
}
