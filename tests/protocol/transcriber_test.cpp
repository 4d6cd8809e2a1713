#include "protocol/transcription/transcriber.hpp"

#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/event_writer.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <optional>

using namespace parley::protocol;
using namespace std::chrono_literals;

namespace {

/// A transcriber with a clock, the one session that may be open, and the answers.
struct fixture {
  transcriber that{};
  time_point now{1h};
  std::optional<std::uint64_t> open{};
  std::vector<nlohmann::json> asked{};
  std::vector<transcript> answers{};

  void carry_out(transcriber::effects effects) {
    for (auto& effect : effects) {
      if (const auto* opened = std::get_if<guest::open_session>(&effect)) {
        REQUIRE(!open);
        open = opened->number;
      } else if (const auto* said = std::get_if<guest::to_session>(&effect)) {
        REQUIRE(open == said->number);
        asked.push_back(nlohmann::json::parse(written(said->event)));
      } else if (const auto* dropped = std::get_if<guest::drop_session>(&effect)) {
        REQUIRE(open == dropped->number);
        open.reset();
      } else {
        answers.push_back(std::get<transcript>(effect));
      }
    }
  }
  void want(std::uint64_t number, std::size_t samples = 16'000, std::string language = "") {
    const auto sound = std::make_shared<const std::vector<std::int16_t>>(samples, std::int16_t{1000});
    carry_out(that.want({number, sound, std::move(language)}, now));
  }
  void hear(const server_event& event) {
    REQUIRE(open);
    carry_out(that.on_event(*open, event));
  }
  void grant() {
    session_created created;
    created.turn_based = true;
    hear(created);
  }
  void done(const std::string& text, const std::string& reason = "turn_end") {
    response_done said;
    said.text = text;
    said.reason = reason;
    hear(said);
  }
  void wait(std::chrono::milliseconds time) {
    now += time;
    if (const auto due = that.next_deadline(); due && now >= *due) carry_out(that.tick(now));
  }
};

} // namespace

TEST_CASE("sessions that fail at once are opened in small numbers, and the next turn waits for its own") {
  fixture of;
  int opened = 0;
  for (std::uint64_t turn = 1; turn <= 100; ++turn) {
    of.want(turn);
    if (!of.open) continue;
    ++opened;
    of.hear(error_event{error_code::queue_full, "no"});
  }
  CHECK(opened == 16);
  CHECK(of.answers.size() == 95); // four wait, behind one that is to have the next session
  of.wait(600ms);
  REQUIRE(of.open);
  of.grant();
  of.done("Hello.");
  CHECK(of.answers.back().text == "Hello.");
}

TEST_CASE("a turn is written down by a chat session that is open for nothing else") {
  fixture of;
  of.want(7, 24'000);
  REQUIRE(of.asked.size() == 1);
  CHECK(of.asked[0]["type"] == "session.init");
  of.grant();
  REQUIRE(of.asked.size() == 2);
  const auto turn = of.asked[1];
  CHECK(turn["input"]["streaming"] == false);
  CHECK(turn["input"]["generation"]["do_sample"] == false);
  CHECK(turn["input"]["messages"][0]["content"][1]["type"] == "audio");
  const auto frame = turn.dump();
  const auto envelope = peek(frame);
  REQUIRE(envelope);
  CHECK(decode_chat_append(*envelope));
  of.done(" What time is it?\n");
  REQUIRE(of.answers.size() == 1);
  CHECK(of.answers[0].number == 7);
  CHECK(of.answers[0].result == transcript_result::completed);
  CHECK(of.answers[0].text == "What time is it?");
  CHECK(of.answers[0].seconds == 1.5);
  CHECK_FALSE(of.open);
  CHECK_FALSE(of.that.next_deadline());
}

TEST_CASE("turns are written down one after the other, and few wait") {
  fixture of;
  for (std::uint64_t number = 1; number <= 6; ++number) of.want(number);
  REQUIRE(of.answers.size() == 1);
  CHECK(of.answers[0].number == 6);
  CHECK(of.answers[0].result == transcript_result::busy);
  for (int i = 0; i < 5; ++i) {
    of.grant();
    of.done(std::to_string(i));
  }
  REQUIRE(of.answers.size() == 6);
  for (std::size_t i = 1; i < 6; ++i) {
    CHECK(of.answers[i].number == i);
    CHECK(of.answers[i].text == std::to_string(i - 1));
  }
}

TEST_CASE("a long turn is not written down") {
  fixture of;
  of.want(1, most_transcribed_samples);
  CHECK(of.answers.empty());
  of.want(2, most_transcribed_samples + 1);
  REQUIRE(of.answers.size() == 1);
  CHECK(of.answers[0].result == transcript_result::too_long);
}

TEST_CASE("a session that has to go is followed by another, for a while") {
  fixture of;
  of.want(1);
  for (int i = 0; i < 4; ++i) {
    of.grant();
    of.done("", "cancelled");
    of.hear(session_closed{"recalled", {}});
    REQUIRE(of.open);
  }
  SECTION("and that one writes it down") {
    of.grant();
    of.done("at last");
    CHECK(of.answers.at(0).text == "at last");
  }
  SECTION("but not for ever") {
    of.carry_out(of.that.on_closed(*of.open));
    CHECK(of.answers.at(0).result == transcript_result::busy);
    CHECK_FALSE(of.open);
  }
}

TEST_CASE("without an idle slot in time there is no transcript") {
  fixture of;
  of.want(1);
  of.want(2);
  of.wait(19s);
  CHECK(of.answers.empty());
  of.wait(1s);
  REQUIRE(of.answers.size() == 2);
  for (const auto& each : of.answers) CHECK(each.result == transcript_result::busy);
  CHECK_FALSE(of.open);
}

TEST_CASE("errors and the end of the transcriber fail what was asked for") {
  fixture of;
  of.want(1);
  SECTION("no worker") {
    of.hear(error_event{error_code::service_unavailable, "none"});
    CHECK(of.answers.at(0).result == transcript_result::busy);
  }
  SECTION("the model") {
    of.grant();
    of.done("", "error");
    CHECK(of.answers.at(0).result == transcript_result::failed);
  }
  SECTION("the end") {
    of.want(2);
    of.carry_out(of.that.give_up());
    REQUIRE(of.answers.size() == 2);
    CHECK(of.answers[0].result == transcript_result::failed);
  }
  CHECK_FALSE(of.open);
}

TEST_CASE("who speaks Chinese is asked in Chinese") {
  const auto sound = std::make_shared<const std::vector<std::int16_t>>(16'000);
  const auto task = [&](const std::string& language) {
    const auto turn = nlohmann::json::parse(written(transcription_turn({1, sound, language})));
    return turn["input"]["messages"][0]["content"][0]["text"].get<std::string>();
  };
  CHECK(task("zh-CN").starts_with("请"));
  CHECK(task("en") == task(""));
}
