#include "actors/bytes/compact_frame.hpp"
#include "actors/bytes/unit_codec.hpp"
#include "actors/log/crc32c.hpp"
#include "actors/log/log_format.hpp"
#include "actors/log/log_record.hpp"
#include "protocol/media/base64.hpp"
#include "protocol/media/pcm.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace parley;
using namespace parley::actors;

// The records of a session's log, and the frames around them.

namespace {

std::string base64_of(std::string_view bytes) {
  std::string text;
  protocol::base64::append(std::as_bytes(std::span(bytes)), text);
  return text;
}

std::string sound_frame(const std::vector<float>& samples) {
  std::string frame = R"({"type":"input.append","input":{"audio":")";
  protocol::append_samples(samples, frame);
  return frame + R"(","force_listen":true}})";
}

std::vector<float> sound(std::size_t samples, std::mt19937& random, bool in_16_bits) {
  std::vector<float> made(samples);
  for (auto& x : made) {
    const auto number = static_cast<float>(static_cast<int>(random() % 65536) - 32768) / 32768;
    x = in_16_bits ? number : number / 3;
  }
  return made;
}

} // namespace

TEST_CASE("CRC-32C of the examples in RFC 3720 and of a text in pieces") {
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AA);
  CHECK(crc32c(std::string(32, '\xFF')) == 0x62A8AB43);
  CHECK(crc32c("123456789") == 0xE3069283);
  const std::string text = "a conversation that goes on";
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    CHECK(crc32c(text.substr(cut), crc32c(text.substr(0, cut))) == crc32c(text));
}

TEST_CASE("a frame of 16-bit sound takes two bytes a sample, any other sound four") {
  std::mt19937 random(1);
  const auto voice = sound_frame(sound(16'000, random, true));
  CHECK(compact_frame(voice).size() < 2 * 16'000 + 200);
  CHECK(expand_frame(compact_frame(voice)) == voice);
  const auto noise = sound_frame(sound(16'000, random, false));
  CHECK(compact_frame(noise).size() < 4 * 16'000 + 200);
  CHECK(expand_frame(compact_frame(noise)) == noise);
}

TEST_CASE("a frame comes back byte for byte, whatever it is") {
  std::mt19937 random(2);
  const std::string file(1000, 'x');
  std::vector<std::string> frames = {
      "",
      "\"",
      R"({"type":"session.close"})",
      R"({"input":{"audio":")" + std::string(300, 'A') + "\"}}", // bits of a last group that are set
      R"({"input":{"audio":")" + base64_of(file) + R"(","video_frames":["data:image/jpeg;base64,)" + base64_of(file) +
          "\"]}}",
      R"({"a":")" + base64_of(file).substr(0, 997) + "\"}",            // not a whole number of groups
      R"({"a":")" + base64_of("yes" + file).substr(0, 400) + "B==\"}", // padding after too little
      R"({"a":")" + base64_of(file).replace(500, 2, "\\/") + "\"}",
      R"({"a":")" + base64_of(file), // never closed
  };
  const char alphabet[] = "\"\\{}:,ABCab01+/= data:;base64\n";
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (auto length = random() % 900; length > 0; --length)
      text += random() % 40 == 0 ? alphabet[random() % (sizeof alphabet - 1)] : "ABCD"[random() % 4];
    frames.push_back(std::move(text));
  }
  for (const auto& frame : frames) CHECK(expand_frame(compact_frame(frame)) == frame);
}

TEST_CASE("records come back as they were") {
  std::mt19937 random(3);
  logged::beginning begin{};
  begin.accepted_ns = 123;
  begin.mode = "audio";
  begin.session_id = "sess_x";
  begin.key = "alice";
  begin.id_seed = 77;
  begin.limits.audio = std::chrono::seconds(5);
  begin.limits.unit = {1, 2, true};
  begin.able = {true, false, true};
  const auto packed = pack({std::chrono::nanoseconds(9), begin});
  const auto again = unpack_record(packed);
  REQUIRE(again);
  CHECK(again->at == std::chrono::nanoseconds(9));
  const auto& first = std::get<logged::beginning>(again->what);
  CHECK(first.mode == "audio");
  CHECK(first.key == "alice");
  CHECK(first.limits.audio == std::chrono::seconds(5));
  CHECK(first.limits.unit == begin.limits.unit);
  CHECK_FALSE(first.able.sees);
  CHECK(pack(*again) == packed);

  conversation::step_output output{};
  output.unit = 4;
  output.kind = conversation::output_kind::audio;
  output.text = "yes";
  output.audio = std::make_shared<const std::vector<float>>(sound(24'000, random, true));
  output.choices = std::make_shared<const conversation::unit_choices>();
  const auto loud = pack({{}, logged::engine_word{output}});
  CHECK(loud.size() < 2 * 24'000 + 1000);
  const auto heard = unpack_record(loud);
  REQUIRE(heard);
  CHECK(kind_of<logged::engine_word>(loud));
  const auto& word = std::get<logged::engine_word>(heard->what);
  CHECK(pack(word.event) == pack(conversation::event(output)));

  protocol::transcript judged{3, protocol::transcript_result::completed, "", 1.5, {{"", "get_time", "{}"}}};
  const auto turn = unpack_record(pack({{}, logged::user_turn{judged}}));
  REQUIRE(turn);
  CHECK(std::get<logged::user_turn>(turn->what).heard.calls.at(0).name == "get_time");
}

TEST_CASE("a log that is cut anywhere gives the records before the cut") {
  std::string log = log_header();
  std::vector<std::size_t> ends{log.size()};
  const std::vector<std::string> records = {"one", std::string(300, 'x'), "three"};
  for (const auto& record : records) {
    append_record(log, record);
    ends.push_back(log.size());
  }
  for (std::size_t cut = 0; cut <= log.size(); ++cut) {
    log_reader in(std::string_view(log).substr(0, cut));
    std::size_t whole = 0;
    while (const auto record = in.next()) CHECK(*record == records.at(whole++));
    CHECK(whole == static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), cut) - ends.begin()) -
                       (cut >= ends[0] ? 1 : 0));
    if (cut >= ends[0]) CHECK(in.good_bytes() == ends.at(whole));
  }
}

TEST_CASE("a flipped bit ends a log before the record that has it") {
  std::string log = log_header();
  std::vector<std::size_t> ends{log.size()};
  for (const auto* record : {"one", "two and a half", "three"}) {
    append_record(log, record);
    ends.push_back(log.size());
  }
  for (std::size_t at = 0; at < log.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = log;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
      log_reader in(damaged);
      std::size_t whole = 0;
      while (in.next()) ++whole;
      const auto hit = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), at) - ends.begin());
      CHECK(whole == (hit == 0 ? 0 : hit - 1));
    }
  }
}

TEST_CASE("records with numbers, ids or words that make no sense are refused") {
  const auto refused = [](log_record what, std::chrono::nanoseconds at = {}) {
    return !unpack_record(pack({at, std::move(what)}));
  };
  logged::beginning good{};
  good.session_id = "sess_x";
  CHECK_FALSE(refused(good));
  CHECK(refused(good, std::chrono::hours(24 * 31)));
  const std::function<void(logged::beginning&)> ways[] = {
      [](auto& of) { of.session_id = "../outside/precious"; },
      [](auto& of) { of.session_id = "/outside"; },
      [](auto& of) { of.session_id = ""; },
      [](auto& of) { of.session_id.assign(65, 'x'); },
      [](auto& of) { of.recording_id = "../x"; },
      [](auto& of) { of.legacy_id = "a/b"; },
      [](auto& of) { of.key = "alice\n"; },
      [](auto& of) { of.remote = "\x1b[2J"; },
      [](auto& of) { of.group = "\xff"; },
      [](auto& of) { of.mode.assign(5000, 'x'); },
      [](auto& of) { of.accepted_ns = -1; },
      [](auto& of) { of.accepted_ns = std::numeric_limits<std::int64_t>::max(); },
      [](auto& of) { of.limits.audio = std::chrono::milliseconds(-1); },
      [](auto& of) { of.limits.resume = std::chrono::hours(10'000); },
      [](auto& of) { of.limits.backlog_units = std::size_t(-1); },
      [](auto& of) { of.limits.delegations = std::size_t(-1); },
      [](auto& of) { of.limits.delegation = std::chrono::milliseconds(-1); },
      [](auto& of) { of.limits.failover_units = std::size_t{1} << 40; },
      [](auto& of) { of.limits.min_legacy_samples = std::size_t(-1); },
      [](auto& of) { of.limits.context_tokens = -1; },
      [](auto& of) { of.limits.unit.rows = std::numeric_limits<int>::max(); },
      [](auto& of) { of.limits.window = static_cast<protocol::window_mode>(9); },
  };
  for (const auto& spoil : ways) {
    auto bad = good;
    spoil(bad);
    CHECK(refused(bad));
  }
  CHECK(refused(logged::worker_news{static_cast<logged::worker_change>(3)}));
  CHECK(refused(logged::handed_over{-1}));
  CHECK(refused(logged::handed_over{std::numeric_limits<std::int64_t>::max()}));
  CHECK_FALSE(refused(logged::user_turn{{1, protocol::transcript_result::completed, "yes", 1}}));
  CHECK(refused(logged::user_turn{{1, static_cast<protocol::transcript_result>(4), "yes", 1}}));
  CHECK(refused(logged::user_turn{{1, protocol::transcript_result::completed, "\xff", 1}}));
  CHECK(refused(logged::user_turn{{1, protocol::transcript_result::completed, "yes", std::nan("")}}));
  CHECK(refused(
      logged::user_turn{{1, protocol::transcript_result::completed, "", 1, std::vector<conversation::tool_call>(5)}}));
  conversation::chat_delta delta{1, 2, "Hello", nullptr};
  CHECK_FALSE(refused(logged::engine_word{delta}));
  delta.calls = {{std::size_t{1} << 40, "f", "{}"}};
  CHECK(refused(logged::engine_word{delta}));
  conversation::chat_done loud{1, 2, conversation::finish_reason::turn_end, "", nullptr, {}, {}};
  loud.audio = std::make_shared<const std::vector<float>>(5, std::nanf(""));
  CHECK(refused(logged::engine_word{loud}));
}
