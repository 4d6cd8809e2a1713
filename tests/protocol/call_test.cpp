#include "tests/protocol/realtime_driver.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

// A call: a session of the Realtime API whose sound goes beside the events.
using namespace parley::tests;
using nlohmann::json;
using parley::protocol::mode;
using std::chrono::milliseconds;

namespace {

const json vad = {{"audio", {{"input", {{"turn_detection", {{"type", "server_vad"}}}}}}}};
const json respond = {{"type", "response.create"}};

realtime_driver a_call() {
  return realtime_driver(true, 1, {}, true);
}

int count(const std::vector<json>& events, const std::string& type) {
  return static_cast<int>(
      std::count_if(events.begin(), events.end(), [&](const auto& each) { return each["type"] == type; }));
}

/// An answer of ten seconds that has been made and is being heard.
std::vector<json> say_long_answer(realtime_driver& server) {
  server.update(vad);
  server.send(respond);
  server.grant();
  auto events = server.chat_delta("One two three four five six seven eight nine ten.");
  auto first = server.chat_delta("", 1);
  events.insert(events.end(), first.begin(), first.end());
  for (int i = 0; i < 9; ++i) server.chat_delta("", 1);
  server.chat_done();
  return events;
}

} // namespace

TEST_CASE("a call hears an answer beside the events, at the pace of time") {
  auto server = a_call();
  const auto first = say_long_answer(server);
  const auto id = last(first, "output_audio_buffer.started")["response_id"];
  CHECK(server.played() == 1); // the rest may still be taken back
  std::vector<json> all;
  for (int ms = 0; ms < 9'000; ms += 100) {
    const auto more = server.wait(milliseconds(100));
    all.insert(all.end(), more.begin(), more.end());
    const double heard = (ms + 100) / 1000.0;
    CHECK(server.played() >= heard);
    CHECK(server.played() <= heard + 1.2); // seconds are made, and each is sent when 200 ms are left of the one before
  }
  const auto rest = server.wait(milliseconds(2'000));
  all.insert(all.end(), rest.begin(), rest.end());
  CHECK(server.played() == 10);
  CHECK(last(all, "response.done")["response"]["status"] == "completed");
  CHECK(last(all, "output_audio_buffer.stopped")["response_id"] == id);
  CHECK(count(server.events(), "response.output_audio.delta") == 0);
  CHECK(count(server.events(), "response.output_audio.done") == 1);
  CHECK(count(server.events(), "output_audio_buffer.started") == 1);
  CHECK(server.dropped_sound() == 0);
  server.seen().check_quiet();
}

TEST_CASE("who speaks in a call stops what is heard, and the conversation has what was heard") {
  auto server = a_call();
  const auto first = say_long_answer(server);
  const auto item = last(first, "conversation.item.added")["item"]["id"];
  server.hear_call(quiet(2.4));
  const auto events = server.hear_call(tone(0.6, 0.5f));
  const auto names = types(events);
  const auto at = [&](const std::string& type) { return std::find(names.begin(), names.end(), type) - names.begin(); };
  REQUIRE(count(events, "output_audio_buffer.cleared") == 1);
  CHECK(at("input_audio_buffer.speech_started") < at("output_audio_buffer.cleared"));
  CHECK(at("output_audio_buffer.cleared") < at("conversation.item.truncated"));
  CHECK(server.dropped_sound() == 1);
  const auto cut = last(events, "conversation.item.truncated");
  CHECK(cut["item_id"] == item);
  const auto begun = last(events, "input_audio_buffer.speech_started")["audio_start_ms"].get<int>();
  CHECK(cut["audio_end_ms"].get<int>() >= begun);
  CHECK(cut["audio_end_ms"].get<int>() <= 3'000); // it was sent 4 s
  CHECK(last(events, "response.done")["response"]["status_details"]["reason"] == "turn_detected");
  const auto kept =
      last(server.send({{"type", "conversation.item.retrieve"}, {"item_id", item}}), "conversation.item.retrieved");
  const auto words = kept["item"]["content"][0]["transcript"].get<std::string>();
  CHECK(words.size() < 25);
  CHECK(words.starts_with("One"));
}

TEST_CASE("a client clears what it is yet to hear") {
  auto server = a_call();
  const auto first = say_long_answer(server);
  server.wait(milliseconds(1'500));
  const auto events = server.send({{"type", "output_audio_buffer.clear"}});
  CHECK(count(events, "output_audio_buffer.cleared") == 1);
  CHECK(last(events, "conversation.item.truncated")["audio_end_ms"] == 1'500);
  CHECK(last(events, "response.done")["response"]["status"] == "cancelled");
  CHECK(server.dropped_sound() == 1);
  CHECK(server.send({{"type", "output_audio_buffer.clear"}}).empty()); // nothing is heard
  server.seen().check_quiet();
}

TEST_CASE("cancelled is what is made, not what was sent: that is heard to its end") {
  auto server = a_call();
  say_long_answer(server);
  server.wait(milliseconds(500));
  const auto events = server.send({{"type", "response.cancel"}});
  CHECK(last(events, "response.done")["response"]["status"] == "cancelled");
  CHECK(count(events, "output_audio_buffer.cleared") == 0);
  CHECK(server.wait(milliseconds(499)).empty());
  CHECK(types(server.wait(milliseconds(1))) == std::vector<std::string>{"output_audio_buffer.stopped"});
  CHECK(server.dropped_sound() == 0);
}

TEST_CASE("the sound of a call is heard as that of appends is") {
  auto server = a_call();
  const auto events = server.hear_call(tone(1, 0.5f));
  CHECK(count(events, "input_audio_buffer.speech_started") == 1);
  CHECK(server.open() == mode::audio);
  server.grant();
  server.asked();
  server.hear_call(tone(1, 0.5f));
  CHECK_FALSE(server.asked().empty()); // a unit
  const auto spoken = server.speaks("resp_1", "Hello.", 1, true);
  CHECK(count(spoken, "output_audio_buffer.started") == 1);
  CHECK(server.played() == 1);
}

TEST_CASE("sound of a call that comes much faster than time is refused") {
  auto server = a_call();
  const std::vector<float> minute(16'000 * 60);
  std::vector<json> events;
  for (int i = 0; i < 15 && last(events, "error").is_null(); ++i) {
    auto& machine = const_cast<parley::protocol::openai::realtime::machine&>(server.machine());
    for (auto& effect : machine.on_sound(minute, std::chrono::steady_clock::time_point(std::chrono::hours(1))))
      if (const auto* frame = std::get_if<parley::protocol::openai::to_client>(&effect))
        events.push_back(json::parse(frame->frame));
  }
  CHECK(last(events, "error")["error"]["code"] == "rate_limit_exceeded");
}

TEST_CASE("what only a call may clear does nothing to other sessions") {
  realtime_driver server;
  server.update(vad);
  server.send(respond);
  server.grant();
  const auto events = server.chat_delta("One two three.", 3);
  CHECK(count(events, "output_audio_buffer.started") == 0);
  CHECK(count(events, "response.output_audio.delta") == 3);
  CHECK(server.send({{"type", "output_audio_buffer.clear"}}).empty());
}
