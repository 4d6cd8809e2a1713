#include "protocol/media/pcm.hpp"
#include "tests/protocol/live_driver.hpp"
#include "tests/protocol/realtime_driver.hpp"

#include <catch2/catch.hpp>

using namespace parley::tests;
using namespace parley::protocol;
using wire_json = nlohmann::json;
using std::chrono::milliseconds;

namespace {

wire_json with_transcripts(const wire_json& wish) {
  return {{"audio", {{"input", {{"transcription", wish}, {"turn_detection", {{"type", "server_vad"}}}}}}}};
}

openai::realtime::machine_terms writing() {
  openai::realtime::machine_terms terms;
  terms.transcribes = true;
  return terms;
}

} // namespace

TEST_CASE("a client that asks for it is told what its user said, whenever that is known") {
  realtime_driver server(true, 1, writing());
  const wire_json wish = {{"model", "whisper-1"}, {"language", "en"}};
  CHECK(last(server.update(with_transcripts(wish)), "session.updated")["session"]["audio"]["input"]["transcription"] ==
        wish);
  const auto turn = server.hear(tone(1));
  const auto committed = last(server.hear(quiet(1)), "input_audio_buffer.committed");
  const auto asked = server.unwritten();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].language == "en");
  CHECK(asked[0].sound->size() > 16'000);
  server.grant();
  server.chat_delta("An answer.", 0.1);
  server.chat_done();
  server.wait(milliseconds(500));
  const auto told = server.writes({asked[0].number, transcript_result::completed, "Hello.", 1.5});
  REQUIRE(types(told) == std::vector<std::string>{"conversation.item.input_audio_transcription.delta",
                                                  "conversation.item.input_audio_transcription.completed"});
  CHECK(told[0]["item_id"] == committed["item_id"]);
  CHECK(told[1]["transcript"] == "Hello.");
  CHECK(told[1]["usage"] == wire_json{{"type", "duration"}, {"seconds", 1.5}});
  const auto kept = server.send({{"type", "conversation.item.retrieve"}, {"item_id", committed["item_id"]}});
  CHECK(kept.at(0)["item"]["content"][0]["transcript"] == "Hello.");
  CHECK(server.writes({asked[0].number, transcript_result::completed, "Hello.", 1.5}).empty());
}

TEST_CASE("a transcript that fails says so, and one of a deleted item says nothing") {
  realtime_driver server(true, 1, writing());
  server.update({{"audio", {{"input", {{"transcription", wire_json::object()}, {"turn_detection", nullptr}}}}}});
  server.hear(tone(0.5));
  server.send({{"type", "input_audio_buffer.commit"}});
  server.hear(tone(0.5));
  const auto second = last(server.send({{"type", "input_audio_buffer.commit"}}), "input_audio_buffer.committed");
  const auto asked = server.unwritten();
  REQUIRE(asked.size() == 2);
  const auto failed = server.writes({asked[0].number, transcript_result::busy});
  REQUIRE(failed.size() == 1);
  CHECK(failed[0]["type"] == "conversation.item.input_audio_transcription.failed");
  CHECK(failed[0]["error"]["code"] == "server_busy");
  server.send({{"type", "conversation.item.delete"}, {"item_id", second["item_id"]}});
  CHECK(server.writes({asked[1].number, transcript_result::completed, "Gone."}).empty());
}

TEST_CASE("nobody is listened to who did not ask, or where the server does not do it") {
  const auto asks = [](realtime_driver& server, const wire_json& wish) {
    const auto session = last(server.update(with_transcripts(wish)), "session.updated")["session"];
    server.hear(tone(1));
    server.hear(quiet(1));
    return std::pair(session["audio"]["input"]["transcription"], server.unwritten().size());
  };
  realtime_driver server(true, 1, writing()), silent;
  CHECK(asks(server, nullptr) == std::pair(wire_json(nullptr), std::size_t{0}));
  CHECK(asks(silent, {{"model", "x"}}) == std::pair(wire_json(nullptr), std::size_t{0}));
}

TEST_CASE("in Live what the user said comes with the times at which it was said") {
  openai::live::machine_terms terms;
  terms.transcribes = true;
  live_driver server(terms);
  server.begin();
  server.hear(quiet(2));
  server.hear(tone(1.5));
  server.hear(quiet(1));
  const auto asked = server.unwritten();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].sound->size() > 24'000);
  CHECK(asked[0].sound->size() < 48'000);
  const auto told = server.writes({asked[0].number, transcript_result::completed, "Good morning."});
  REQUIRE(told.size() == 1);
  CHECK(told[0]["delta"] == "Good morning.");
  CHECK(told[0]["start_ms"].get<int>() >= 1900);
  CHECK(told[0]["start_ms"].get<int>() <= 2200);
  CHECK(told[0]["end_ms"].get<int>() >= 3500);
  CHECK(server.writes({asked[0].number, transcript_result::busy}).empty());
}

TEST_CASE("in Live a turn that the model ends is written down, and a long one is too long") {
  openai::live::machine_terms terms;
  terms.transcribes = true;
  live_driver server(terms);
  server.begin();
  server.hear(quiet(0.5));
  server.hear(tone(2));
  server.speaks("resp_1", "I see.", 1, true);
  CHECK(server.unwritten().size() == 1);
  server.wait(milliseconds(1500));
  for (int i = 0; i < 33; ++i) {
    server.hear(tone(0.9, 0.3f));
    server.hear(quiet(0.1));
  }
  server.hear(quiet(1));
  const auto asked = server.unwritten();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].sound->size() == most_transcribed_samples + 1);
}

TEST_CASE("the statistics hear of turns, interruptions, lanes and errors") {
  realtime_driver server;
  CHECK(server.notes() == std::vector<std::string>{"lane duplex"});
  server.update({{"audio", {{"input", {{"turn_detection", {{"type", "server_vad"}}}}}}}});
  server.hear(tone(1));
  server.hear(quiet(1));
  server.grant();
  server.chat_delta("A long answer", 5);
  server.hear(tone(0.5));
  server.send({{"type", "no.such.event"}});
  CHECK(server.notes() ==
        std::vector<std::string>{"lane turn", "turn", "side_turn", "turn", "barge_in", "error invalid_value"});
}

TEST_CASE("server_vad may be answered in full duplex") {
  openai::realtime::machine_terms terms;
  terms.server_vad_is_duplex = true;
  realtime_driver server(true, 1, terms);
  server.update({{"audio", {{"input", {{"turn_detection", {{"type", "server_vad"}}}}}}}});
  server.hear(tone(1));
  CHECK(server.open() == mode::audio);
}

TEST_CASE("a voice with a name of its own goes to sessions and chat turns") {
  openai::realtime::machine_terms terms;
  const auto voice = std::make_shared<const std::vector<float>>(8000, 0.25f);
  std::string written;
  append_samples(*voice, written);
  terms.voices = std::make_shared<speech::voice_map>(speech::voice_map{{"marin", voice}});
  realtime_driver server(true, 1, terms);
  server.update({{"audio", {{"output", {{"voice", "marin"}}}}}});
  server.hear(tone(0.5));
  CHECK(server.asked().at(0)["payload"]["voice"]["ref_audio_base64"] == written);
  server.send({{"type", "response.create"}, {"response", {{"conversation", "none"}}}});
  server.hear(quiet(1));
  server.wait(milliseconds(1000));
  if (server.open() == mode::chat) server.grant();
  const auto frames = server.asked();
  const auto turn = std::find_if(frames.begin(), frames.end(), [](const wire_json& each) {
    return each["type"] == "input.append" && each["input"].contains("messages");
  });
  REQUIRE(turn != frames.end());
  CHECK((*turn)["input"]["tts"]["ref_audio_data"] == written);
}
