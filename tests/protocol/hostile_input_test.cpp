#include "protocol/codec/client_codec.hpp"
#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <random>

using namespace parley::protocol;
namespace test = parley::protocol::test;

namespace {

/// Decodes a frame as every event that it might be. Whatever it holds, the result is a fault, an error or an event.
void digest(std::string_view frame) {
  auto from = peek(frame);
  if (!from) {
    REQUIRE_FALSE(from.error().reason.message.empty());
    return;
  }
  for (auto url_mode : {std::optional(mode::chat), std::optional(mode::video), std::optional<mode>()}) {
    auto init = decode_session_init(*from, url_mode);
    if (!init) REQUIRE_FALSE(init.error().message.empty());
  }
  for (auto kind : {mode::audio, mode::video}) {
    auto update = decode_session_update(*from, kind);
    if (!update) REQUIRE_FALSE(update.error().message.empty());
    auto append = decode_append(*from, kind, 4000);
    if (!append) REQUIRE_FALSE(append.error().message.empty());
  }
  auto chat = decode_chat_append(*from);
  if (!chat) REQUIRE_FALSE(chat.error().message.empty());
  REQUIRE_FALSE(decode_close(*from).reason.empty());
}

/// A generous limit: linear work on some megabytes takes milliseconds, and sanitizers make it several tens of times
/// slower. Quadratic work would take minutes.
template<class Work>
void quickly(Work work) {
  auto start = std::chrono::steady_clock::now();
  work();
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

} // namespace

TEST_CASE("hostile: 8 MB of garbage where base64 belongs") {
  std::mt19937 random(5);
  std::string garbage(8u << 20, ' ');
  for (auto& c : garbage) c = static_cast<char>(' ' + random() % 95);
  for (auto& c : garbage)
    if (c == '"' || c == '\\') c = '!';
  quickly([&] {
    for (std::string before :
         {R"({"type":"input.append","input":{"audio":")",
          R"({"type":"input.append","input":{"audio":"AAAA","video_frames":[")",
          R"({"type":"session.init","payload":{"voice":{"ref_audio_base64":")",
          R"({"type":"input.append","input":{"messages":[{"role":"user","content":[{"type":"image","data":")"}) {
      std::string closing = before.find("frames") != std::string::npos     ? "\"]}}"
                            : before.find("messages") != std::string::npos ? "\"}]}]}}"
                                                                           : "\"}}";
      if (before.find("voice") != std::string::npos) closing += "}";
      auto frame = before + garbage + closing;
      REQUIRE(peek(frame));
      digest(frame);
    }
  });
}

TEST_CASE("hostile: deep JSON is checked to its end without recursion") {
  quickly([] {
    for (std::size_t depth : {10'000u, 1'000'000u, 8'000'000u}) {
      auto inside = std::string(depth, '[') + std::string(depth, ']');
      auto whole = R"({"type":"session.init","payload":)" + inside + "}";
      auto deep = peek(whole);
      REQUIRE_FALSE(deep);
      CHECK_FALSE(deep.error().not_json);
      whole.pop_back();
      auto cut = peek(whole);
      REQUIRE_FALSE(cut);
      CHECK(cut.error().not_json);
    }
  });
}

TEST_CASE("hostile: objects of very many keys") {
  std::string many = R"({"type":"input.append","input":{)";
  for (int i = 0; i < 400'000; ++i) many += "\"k\\u0041\":0,";
  auto frame = many + R"("audio":"AAAAAA=="}})";
  quickly([&] { digest(frame); });
  CHECK(decode_append(*peek(frame), mode::audio, 4000));
}

TEST_CASE("hostile: very many messages, items and frames") {
  auto repeat = [](const std::string& one, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += (i == 0 ? "" : ",") + one;
    return out;
  };
  quickly([&] {
    digest(R"({"type":"input.append","input":{"messages":[)" + repeat(R"({"role":"user","content":""})", 100'000) +
           "]}}");
    digest(R"({"type":"input.append","input":{"messages":[{"role":"user","content":[)" +
           repeat(R"({"type":"text","text":""})", 100'000) + "]}]}}");
    digest(R"({"type":"input.append","input":{"audio":"AAAAAA==","video_frames":[)" + repeat("\"\"", 500'000) + "]}}");
  });
}

TEST_CASE("hostile: huge and odd numbers") {
  for (std::string number :
       {"1e999", "-1e999", "1e-999", "99999999999999999999999999", "-0", "0e0", "1E400", "0.1e1000000000"}) {
    CAPTURE(number);
    digest(R"({"type":"session.init","payload":{"config":{"temperature":)" + number + R"(,"top_k":)" + number +
           R"(,"seed":)" + number + "}}}");
  }
  std::string digits(1u << 20, '9');
  auto frame = R"({"type":"session.init","payload":{"config":{"temperature":)" + digits + "}}}";
  digest(frame);
  auto long_number = peek(frame);
  auto refused = decode_session_init(*long_number, mode::video);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.size() < 200);
}

TEST_CASE("hostile: lone surrogates and NUL in the prompt") {
  auto from = peek(R"({"type":"session.init","payload":{"system_prompt":"\ud800a\u0000b\udfff"}})");
  REQUIRE(from);
  CHECK(decode_session_init(*from, mode::audio)->system_prompt == std::string("\xEF\xBF\xBD"
                                                                              "a\0b\xEF\xBF\xBD",
                                                                              9));
}

TEST_CASE("hostile: damaged events are refused or read, under every mode") {
  std::mt19937 random(11);
  const std::vector<std::string> seeds{
      R"({"type":"session.init","payload":{"system_prompt":"p","config":{"temperature":0.7,"top_k":20,"decode_mode":"greedy"},"voice":{"ref_audio_base64":")" +
          test::sound(4000).substr(0, 400) + "\"}}}",
      R"({"type":"input.append","input":{"audio":")" + test::sound(30) + R"(","video_frames":[")" + test::jpeg() +
          R"("],"hints":{"force_listen":true,"max_slice_nums":2}}})",
      R"({"type":"input_audio_buffer.append","audio":{"data":")" + test::sound(30) +
          R"("},"force_listen":null,"max_slice_nums":3})",
      R"({"type":"input.append","input":{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":")" +
          test::jpeg() + R"("},{"type":"video","data":[")" + test::jpeg() +
          R"("]}]}],"tts":{"enabled":true,"ref_audio_data":"UklGRg=="}}})",
      R"({"type":"session.update","session":{"instructions":"x","ref_audio":")" + test::wav_voice().substr(0, 400) +
          "\"}}"};
  for (int round = 0; round < 20'000; ++round) {
    auto frame = seeds[random() % seeds.size()];
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
      auto place = random() % frame.size();
      switch (random() % 4) {
      case 0: frame[place] = static_cast<char>(random() % 128); break;
      case 1: frame.erase(place, 1 + random() % 8); break;
      case 2: frame.insert(place, 1, static_cast<char>(random() % 128)); break;
      default: frame.insert(place, frame.substr(random() % frame.size(), random() % 40));
      }
      if (frame.empty()) break;
    }
    digest(frame);
  }
}
