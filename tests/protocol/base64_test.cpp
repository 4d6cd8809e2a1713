#include "protocol/media/base64.hpp"

#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

#include <random>

namespace base64 = parley::protocol::base64;
namespace test = parley::protocol::test;

namespace {

std::string encode(std::string_view bytes) {
  std::string out;
  base64::append(std::as_bytes(std::span(bytes)), out);
  return out;
}

} // namespace

TEST_CASE("base64: the vectors of RFC 4648") {
  const std::vector<std::pair<std::string, std::string>> vectors{{"", ""},
                                                                 {"f", "Zg=="},
                                                                 {"fo", "Zm8="},
                                                                 {"foo", "Zm9v"},
                                                                 {"foob", "Zm9vYg=="},
                                                                 {"fooba", "Zm9vYmE="},
                                                                 {"foobar", "Zm9vYmFy"}};
  for (auto& [bytes, text] : vectors) {
    CHECK(encode(bytes) == text);
    CHECK(base64::decode(text) == bytes);
    CHECK(base64::decoded_size(text) == bytes.size());
    CHECK(base64::encoded_size(bytes.size()) == text.size());
    CHECK(base64::fault(text).empty());
  }
}

TEST_CASE("base64: round trips of random bytes agree with a plain implementation") {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    std::string bytes(random() % (round < 300 ? 40 : 20'000), '\0');
    for (auto& byte : bytes) byte = static_cast<char>(random());
    auto text = encode(bytes);
    REQUIRE(text == test::to_base64(bytes));
    REQUIRE(base64::decode(text) == bytes);
  }
}

TEST_CASE("base64: appends behind what is there") {
  std::string out = "audio:";
  base64::append(std::as_bytes(std::span(std::string_view("foob"))), out);
  CHECK(out == "audio:Zm9vYg==");
}

TEST_CASE("base64: one wrong byte anywhere is found, and its place is named") {
  std::string good(4096 + 24, 'A');
  for (std::size_t place = 0; place < good.size(); place += place < 40 || place > 4080 ? 1 : 37)
    for (char wrong : {'-', '_', ' ', '\n', '=', '\0', '\x80', '\xFF', ',', '.', '@', '[', '`', '{', ':'}) {
      auto text = good;
      text[place] = wrong;
      if (wrong == '=' && place == text.size() - 1) continue; // valid padding
      REQUIRE_FALSE(base64::decode(text));
      REQUIRE(base64::fault(text) == "not base64 at character " + std::to_string(place));
    }
}

TEST_CASE("base64: padding is required, at the end only, and lengths are multiples of 4") {
  for (std::string text : {"Z", "Zg", "Zg=", "Zm9", "Zm9vYg", "=",
                           "==", "===", "====", "Z===", "Zg==Zg==", "Zm8=Zm8=", "Zg= =", "Zg==\n"}) {
    CAPTURE(text);
    CHECK_FALSE(base64::decode(text));
    CHECK_FALSE(base64::fault(text).empty());
  }
  CHECK(base64::fault("Zm9vZ") == "not base64: 5 characters are no multiple of 4");
}

TEST_CASE("base64: unused bits of the last group are ignored") {
  CHECK(base64::decode("Zh==") == "f");
  CHECK(base64::decode("Zm9=") == "fo");
}

TEST_CASE("base64: white space is taken out wherever it is, and only then anything is copied") {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "Zm9vYmFy";
  CHECK_FALSE(base64::joined(text));
  CHECK_FALSE(base64::joined(""));
  for (const std::string white : {" ", "\n", "\r\n", "\t"}) {
    CHECK(base64::joined(white) == "");
    for (std::size_t at : {0u, 1u, 63u, 64u, 65u, 76u, 1599u, 1600u}) {
      auto wrapped = text;
      wrapped.insert(at, white);
      CHECK(base64::joined(wrapped) == text);
    }
  }
  CHECK_FALSE(base64::joined(std::string("Zm9v\0\x01\x1F\x0B", 8))); // no white space of text
}
