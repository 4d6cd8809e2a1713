#include "tests/protocol/live_driver.hpp"
#include "tests/protocol/realtime_driver.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace parley::tests;
using nlohmann::json;
using parley::protocol::error_code;
using parley::protocol::mode;
using std::chrono::milliseconds;
using type_names = std::vector<std::string>;

namespace {

std::string words_in(const std::vector<json>& events) {
  std::string out;
  for (const auto& each : events)
    if (each["type"] == "session.output_transcript.delta") out += each["delta"];
  return out;
}

std::size_t sounds_in(const std::vector<json>& events) {
  const auto all = types(events);
  return static_cast<std::size_t>(std::count(all.begin(), all.end(), "session.output_audio.delta"));
}

std::string code_of(const std::vector<json>& events) {
  const auto error = last(events, "error");
  return error.is_null() ? "" : error["error"]["code"].get<std::string>();
}

/// Loudness of what the duplex session heard since the last look: its largest sample as base64 is not all A.
struct passed_on {
  std::size_t samples = 0;
  bool loud = false;
  bool forced = false;
};

passed_on heard_by_model(live_driver& server) {
  passed_on out;
  for (const auto& each : server.asked()) {
    if (each["type"] != "input.append") continue;
    const auto audio = each["input"]["audio"].get<std::string>();
    out.samples += audio.size() * 3 / 16; // float32 in base64
    out.loud = out.loud || audio.find_first_not_of("A=") != std::string::npos;
    out.forced = out.forced || each["input"].value("force_listen", false);
  }
  return out;
}

json append(const std::string& channel, const std::string& content) {
  return {
      {"type", "session." + channel + ".append"}, {"event_id", "c1"}, {"delegation_id", nullptr}, {"content", content}};
}

} // namespace

TEST_CASE("a live session starts with session.start and when there is a slot") {
  live_driver server;
  CHECK(code_of(server.send({{"type", "session.input_audio.mute"}, {"event_id", "m"}})) == "session_not_started");
  CHECK(code_of(server.send({{"type", "nonsense"}})) == "session_not_started");
  CHECK(code_of(server.send({{"type", "session.start"}, {"session", json::object()}})) == "missing_required_parameter");
  CHECK_FALSE(server.open());
  CHECK(server.start({{"instructions", "Be brief."}, {"store", false}}).empty());
  REQUIRE(server.open() == mode::audio);
  CHECK(server.prompt() == "Be brief.");
  const auto started = last(server.grant(), "session.started");
  CHECK(started["client_event_id"] == "begin");
  CHECK(started["session"]["status"] == "active");
  CHECK(started["session"]["instructions"] == "Be brief.");
  CHECK(started["session"]["audio"]["format"] == json{{"type", "audio/pcm"}, {"rate", 24000}});
  CHECK(started["session"]["expires_at"] == 1'700'000'600);
  CHECK(code_of(server.start()) == "session_already_started");
  CHECK_FALSE(server.ended());
}

TEST_CASE("a live session without a slot is refused after a while, or at once") {
  live_driver waits;
  waits.start();
  CHECK(waits.wait(milliseconds(7900)).empty());
  CHECK(code_of(waits.wait(milliseconds(200))) == "server_busy");
  REQUIRE(waits.ended());
  CHECK(waits.ended()->code == 1013);
  live_driver refused;
  refused.start();
  const auto told = refused.inner_error(error_code::queue_full);
  CHECK(last(told, "error")["error"]["client_event_id"] == "begin");
  CHECK(refused.ended()->code == 1013);
}

TEST_CASE("formats of a live session are echoed with their rate, and others are refused") {
  for (const auto& format : {json{{"type", "audio/pcm"}, {"rate", 16000}}, json{{"type", "audio/pcmu"}, {"rate", 8000}},
                             json{{"type", "audio/pcma"}, {"rate", 8000}}}) {
    live_driver server;
    server.begin({{"audio", {{"format", format}, {"output", {{"voice", "marin"}}}}}});
    const auto shown = server.seen().front().event["session"]["audio"];
    CHECK(shown["format"] == format);
    CHECK(shown["output"]["voice"] == "marin");
    server.speaks("resp_a", "Hello there", 1, true);
    server.wait(milliseconds(1500));
    double bytes = 0;
    for (const auto& each : server.seen())
      if (each.event["type"] == "session.output_audio.delta")
        bytes += static_cast<double>(each.event["delta"].get<std::string>().size()) * 3 / 4;
    const auto per_second = format["rate"].get<double>() * (format["type"] == "audio/pcm" ? 2 : 1);
    CHECK(bytes == Approx(per_second).epsilon(0.01));
  }
  live_driver server;
  const auto told = server.start({{"audio", {{"format", {{"type", "audio/opus"}, {"rate", 48000}}}}}});
  CHECK(last(told, "error")["error"]["param"] == "session.audio.format");
}

TEST_CASE("sound is sent in frames, never more than one ahead of the clock, with its words in step") {
  live_driver server;
  server.begin();
  server.hear(tone(1));
  server.wait(milliseconds(5)); // the clock of the session is not that of the sound
  const auto began = server.now_ms();
  auto all = server.speaks("resp_a", " One two three", 1);
  CHECK(types(all) == type_names{"session.output_transcript.delta", "session.output_audio.delta"});
  CHECK(all[0]["delta"] == " One");
  CHECK(all[0]["start_ms"] == began);
  for (const auto* words : {" four five six", " seven"}) {
    server.wait(milliseconds(900)); // a unit's sound comes before the last one's has been played
    server.speaks("resp_a", words, 1);
    server.wait(milliseconds(100));
  }
  server.listens();
  server.wait(milliseconds(2000));
  std::vector<std::int64_t> sounds, words;
  std::string text;
  for (const auto& each : server.seen()) {
    if (each.event["type"] == "session.output_audio.delta") sounds.push_back(each.at_ms);
    if (each.event["type"] != "session.output_transcript.delta") continue;
    words.push_back(each.at_ms);
    text += each.event["delta"];
    CHECK(each.event["start_ms"] == each.at_ms);
  }
  CHECK(text == " One two three four five six seven");
  REQUIRE(sounds.size() == 15);
  for (std::size_t i = 1; i < sounds.size(); ++i) CHECK(sounds[i] - sounds[i - 1] == 200);
  for (std::size_t i = 1; i < words.size(); ++i) CHECK(words[i] - words[i - 1] < 800);
  CHECK(words.back() - began >= 2400); // even the single word of the last second comes in two pieces
}

TEST_CASE("a late second is played late, and the pace stays") {
  live_driver server;
  server.begin();
  server.hear(tone(1));
  server.speaks("resp_a", " One two", 1);
  server.wait(milliseconds(1400));
  const auto again = server.now_ms();
  server.speaks("resp_a", " three four", 1, true);
  server.wait(milliseconds(1400));
  std::vector<std::int64_t> sounds;
  for (const auto& each : server.seen())
    if (each.event["type"] == "session.output_audio.delta") sounds.push_back(each.at_ms);
  REQUIRE(sounds.size() == 10);
  CHECK(sounds[5] == again);
  CHECK(sounds[9] == again + 800);
}

TEST_CASE("speech of 600 ms stops the model, and what was not sent is never sent") {
  live_driver server;
  server.begin();
  server.hear(tone(1));
  server.listens();
  server.hear(quiet(1));
  server.listens();
  server.speaks("resp_a", " A very long story", 3);
  server.hear(tone(0.4));
  CHECK(sounds_in(server.hear(quiet(0.5))) > 0);
  server.asked();
  const auto began = server.now_ms();
  server.hear(tone(1));
  CHECK(heard_by_model(server).forced);
  std::int64_t end = 0;
  for (const auto& each : server.seen())
    if (each.event["type"] == "session.output_audio.delta") end = each.at_ms;
  CHECK(end - began >= 500);
  CHECK(end - began <= 700);
  CHECK(server.speaks("resp_a", " goes on", 1).empty()); // it was on its way
  server.listens();
  server.hear(quiet(1));
  CHECK(words_in(server.speaks("resp_b", " Yes?", 1)) == " Ye");
}

TEST_CASE("with a barge-in of 0 the model alone decides") {
  parley::protocol::openai::live::machine_terms terms;
  terms.barge_in = milliseconds(0);
  live_driver server(terms);
  server.begin();
  server.hear(tone(1));
  server.listens();
  server.speaks("resp_a", " A very long story", 3, true);
  CHECK(sounds_in(server.hear(tone(2.5))) >= 12);
  CHECK_FALSE(heard_by_model(server).forced);
}

TEST_CASE("a muted microphone is silence") {
  live_driver server;
  server.begin();
  server.asked();
  const auto muted = server.send({{"type", "session.input_audio.mute"}, {"event_id", "m"}});
  CHECK(types(muted) == type_names{"session.input_audio.muted"});
  CHECK(muted[0]["client_event_id"] == "m");
  server.hear(tone(2));
  const auto silent = heard_by_model(server);
  CHECK(silent.samples >= 16'000);
  CHECK_FALSE(silent.loud);
  server.listens();
  server.listens();
  server.send({{"type", "session.input_audio.unmute"}});
  server.hear(tone(2));
  CHECK(heard_by_model(server).loud);
}

TEST_CASE("commentary is said by a chat turn, at the pace of the clock; then the duplex session comes back") {
  live_driver server;
  server.begin({{"instructions", "Be kind."}});
  server.asked();
  const auto told = server.send(append("commentary", "Greet the caller."));
  CHECK(types(told) == type_names{"session.commentary.appended"});
  CHECK(told[0]["client_event_id"] == "c1");
  REQUIRE(server.open() == mode::chat);
  server.grant();
  const auto turn = last(server.asked(), "input.append");
  CHECK(turn["input"]["tts"]["enabled"] == true);
  server.grant();
  CHECK(server.asked().empty());
  CHECK(turn["input"]["messages"][0]["content"][0]["text"] == "Be kind.");
  CHECK(turn["input"]["messages"].back()["content"][0]["text"].get<std::string>().find("Greet the caller.") !=
        std::string::npos);
  // Text is made faster than its sound, and sound faster than it is played.
  server.chat_delta("Hello and welcome to this very nice place, ", 0);
  server.chat_delta("how are you on this fine day?", 0);
  server.chat_delta("", 1);
  server.chat_delta("", 2);
  server.chat_done();
  CHECK_FALSE(server.open());
  CHECK(sounds_in(server.wait(milliseconds(2700))) == 13);
  CHECK_FALSE(server.open());
  server.wait(milliseconds(400));
  std::string text;
  std::vector<std::int64_t> words;
  for (const auto& each : server.seen()) {
    if (each.event["type"] != "session.output_transcript.delta") continue;
    text += each.event["delta"];
    words.push_back(each.at_ms);
  }
  CHECK(text == "Hello and welcome to this very nice place, how are you on this fine day?");
  for (std::size_t i = 1; i < words.size(); ++i) CHECK(words[i] - words[i - 1] < 800);
  REQUIRE(server.open() == mode::audio);
  CHECK(server.prompt() == "Be kind.\n\nConversation so far:\nYou: " + text + " \n");
}

TEST_CASE("speech stops commentary as well, and only what was heard is remembered") {
  live_driver server;
  server.begin();
  server.send(append("commentary", "Tell a story."));
  server.grant();
  server.chat_delta("Once upon a time there was a server.", 0);
  server.chat_delta("", 4);
  server.asked();
  server.hear(tone(0.8));
  REQUIRE(server.open() == mode::audio);
  const auto prompt = server.prompt();
  CHECK(prompt.find("You: Once") != std::string::npos);
  CHECK(prompt.find("server.") == std::string::npos);
  server.grant();
  server.hear(quiet(0.5));
  CHECK(heard_by_model(server).loud); // what the user said while no session listened
}

TEST_CASE("a second remark waits for the first, and a remark for the user's turn") {
  live_driver server;
  server.begin();
  server.hear(tone(0.5));
  server.send(append("commentary", "One."));
  server.send(append("commentary", "Two."));
  CHECK(server.open() == mode::audio);
  server.hear(quiet(0.6));
  REQUIRE(server.open() == mode::chat);
  server.grant();
  server.chat_delta("First.", 0.2);
  server.chat_done();
  CHECK_FALSE(server.open());
  server.wait(milliseconds(300));
  REQUIRE(server.open() == mode::chat);
  for (int i = 0; i < 8; ++i) CHECK(code_of(server.send(append("commentary", "More."))) == "");
  CHECK(code_of(server.send(append("commentary", "Too much."))) == "rate_limit_exceeded");
}

TEST_CASE("instructions and thoughts reach the running session at once") {
  live_driver server;
  server.begin(
      {{"instructions", "Be brief."},
       {"input",
        {{{"type", "message"}, {"role", "user"}, {"content", {{{"type", "input_text"}, {"text", "Hi"}}}}},
         {{"type", "message"}, {"role", "assistant"}, {"content", {{{"type", "text"}, {"text", "Hello"}}}}}}}});
  CHECK(server.prompt() == "Be brief.\n\nConversation so far:\nUser: Hi \nYou: Hello \n");
  CHECK(types(server.send(append("instructions", "Speak French."))) == type_names{"session.instructions.appended"});
  CHECK(types(server.send(append("thinking", "It is late."))) == type_names{"session.thinking.appended"});
  const auto asked = server.asked();
  REQUIRE(asked.size() == 2);
  const auto said = [](const nlohmann::json& frame) { return frame["input"]["context"]; };
  CHECK(said(asked[0]) == nlohmann::json::array({{{"role", "system"}, {"content", "Speak French."}}}));
  CHECK(said(asked[1]) == nlohmann::json::array({{{"role", "system"}, {"content", "It is late."}}}));
  server.wait(milliseconds(5000));
  CHECK(server.open() == mode::audio);
  CHECK(server.asked().empty()); // once, and to the session that it was
}

TEST_CASE("what comes while the model speaks reaches it when that has ended") {
  live_driver server;
  server.begin({});
  server.hear(tone(1));
  server.speaks("resp_a", "A long", 1);
  server.asked();
  server.send(append("instructions", "Speak French."));
  const auto told = [&] {
    const auto asked = server.asked();
    return std::any_of(asked.begin(), asked.end(), [](const nlohmann::json& each) {
      return each.contains("input") && each["input"].contains("context");
    });
  };
  server.hear(quiet(1));
  CHECK_FALSE(told());
  SECTION("of itself") {
    server.speaks("resp_a", " story.", 1, true);
  }
  SECTION("because the model listens") {
    server.listens();
  }
  SECTION("because somebody else speaks") {
    server.hear(tone(1));
  }
  CHECK(told());
}

TEST_CASE("what a running session was told is part of the next session's prompt") {
  live_driver server;
  server.begin({{"instructions", "Be brief."}});
  server.send(append("instructions", "Speak French."));
  for (int i = 0; i < 3; ++i) server.send(append("thinking", std::string(3990, 'x'))); // more than fits before a second
  server.asked();
  server.wait(milliseconds(300));
  REQUIRE(server.open() == mode::audio);
  const auto prompt = server.prompt();
  CHECK(prompt.starts_with("Be brief.\n\nConversation so far:\n"));
  CHECK(prompt.find("Note: xxx") != std::string::npos);
  server.grant();
  server.wait(milliseconds(5000));
  CHECK(server.prompt().empty()); // once
}

TEST_CASE("delegation is accepted, and the client learns that nothing is delegated") {
  live_driver server;
  server.begin({{"delegation", {{"type", "responses"}, {"responses", {{"model", "gpt-5"}}}}}});
  CHECK(server.seen()[0].event["session"]["delegation"]["responses"]["model"] == "gpt-5");
  REQUIRE(server.seen().size() == 2);
  CHECK(server.seen()[1].event["code"] == "delegation_unavailable");
  const auto update = server.send({{"type", "session.update"}, {"session", {{"delegation", {{"type", "client"}}}}}});
  CHECK(types(update) == type_names{"session.updated"});
  CHECK(update[0]["session"]["delegation"]["type"] == "client");
  CHECK(code_of(server.send({{"type", "response.create"}})) == "delegation_unavailable");
  CHECK(code_of(server.send({{"type", "decision.create"}})) == "delegation_unavailable");
  CHECK(code_of(server.send({{"type", "session.output_audio.fixture.play"}})) == "unsupported_event");
}

TEST_CASE("a mistake is one error, and the live session goes on") {
  live_driver server;
  server.begin();
  const auto odd = server.send({{"type", "session.input_audio.append"}, {"event_id", "odd"}, {"audio", "YWJj"}});
  CHECK(last(odd, "error")["error"]["code"] == "invalid_audio");
  CHECK(last(odd, "error")["error"]["client_event_id"] == "odd");
  CHECK(code_of(server.send({{"type", "nonsense"}})) == "unknown_event");
  CHECK(code_of(server.send_text("[1]")) == "invalid_json");
  CHECK(code_of(server.send_text("{}")) == "missing_required_parameter");
  CHECK(code_of(server.send({{"type", "session.update"}, {"session", 1}})) == "invalid_type");
  CHECK(code_of(server.send(append("thinking", std::string(4001, 'x')))) == "invalid_value");
  CHECK_FALSE(server.ended());
  for (int i = 0; i < 60 && !server.ended(); ++i) server.send({{"type", "nonsense"}});
  REQUIRE(server.ended());
  CHECK(server.ended()->code == 1008);
}

TEST_CASE("a live session tells its usage each minute, and its end before it closes") {
  live_driver server;
  server.begin();
  const auto minute = server.wait(std::chrono::seconds(61));
  REQUIRE(types(minute) == type_names{"session.usage.updated"});
  CHECK(minute[0]["usage"]["seconds"] == 60.0);
  CHECK(types(server.wait(std::chrono::seconds(60))) == type_names{"session.usage.updated"});
  server.asked();
  const auto closed = server.send({{"type", "session.close"}, {"event_id", "bye"}});
  REQUIRE(types(closed) == type_names{"session.closed"});
  CHECK(closed[0]["reason"] == "close_requested");
  CHECK(closed[0]["client_event_id"] == "bye");
  CHECK(closed[0]["usage"]["seconds"] == 121.0);
  CHECK(server.ended()->code == 1000);
  CHECK(server.asked().back()["type"] == "session.close");
  live_driver old;
  old.begin();
  CHECK(last(old.wait(std::chrono::seconds(600)), "session.closed")["reason"] == "expired");
  CHECK(old.ended()->code == 1001);
}

TEST_CASE("a live session ends when its key has used up its quota") {
  live_driver waits;
  waits.start();
  const auto refused = waits.inner_error(error_code::quota_exceeded);
  CHECK(code_of(refused) == "insufficient_quota");
  CHECK(last(refused, "error")["error"]["client_event_id"] == "begin");
  REQUIRE(waits.ended());
  CHECK(waits.ended()->code == 1008);
  live_driver talks;
  talks.begin();
  const auto told = talks.inner_error(error_code::quota_exceeded);
  CHECK(code_of(told) == "insufficient_quota");
  CHECK(last(told, "error")["error"]["type"] == "insufficient_quota");
  CHECK(last(told, "session.closed")["reason"] == "expired");
  REQUIRE(talks.ended());
  CHECK(talks.ended()->code == 1008);
}

TEST_CASE("a live session outlives the sessions behind it") {
  live_driver server;
  server.begin();
  server.inner_closes();
  CHECK_FALSE(server.open());
  server.wait(milliseconds(2100));
  REQUIRE(server.open() == mode::audio);
  const auto told = server.inner_error(error_code::queue_full);
  CHECK(last(told, "info")["code"] == "server_busy");
  server.wait(milliseconds(2100));
  REQUIRE(server.open() == mode::audio);
  server.grant();
  server.hear(tone(1));
  CHECK_FALSE(server.speaks("resp_a", " Still here", 1, true).empty());
  server.wait(milliseconds(1500));
  server.send(append("commentary", "Speak."));
  server.grant();
  CHECK(last(server.inner_error(error_code::inference_error), "info")["code"] == "inference_error");
  server.wait(milliseconds(2100));
  CHECK(server.open() == mode::audio);
}

TEST_CASE("when the server shuts down, a live session ends with what is being said") {
  live_driver server;
  server.begin();
  server.hear(tone(1));
  server.speaks("resp_a", " Good night everybody", 1, true);
  CHECK(server.drain().empty());
  const auto rest = server.wait(milliseconds(1100));
  CHECK(sounds_in(rest) == 4);
  CHECK(types(rest).back() == "session.closed");
  CHECK(server.ended()->code == 1001);
  live_driver silent, waits;
  CHECK(silent.drain().empty());
  CHECK(silent.ended()->code == 1001);
  waits.start();
  CHECK(code_of(waits.drain()) == "server_busy");
  CHECK(waits.ended()->code == 1001);
}

TEST_CASE("a client that stops sending lets the model finish its sentence") {
  live_driver server;
  server.begin();
  server.hear(tone(1));
  server.listens();
  server.speaks("resp_a", " A long story", 1);
  server.asked();
  server.wait(milliseconds(2500));
  CHECK(heard_by_model(server).samples >= 16'000); // silence
}

TEST_CASE("in Live as well slashes in base64 may be escaped") {
  live_driver server;
  server.begin();
  const auto appended = [&](const std::string& audio) {
    return code_of(server.send_text(R"({"type":"session.input_audio.append","audio":")" + audio + "\"}"));
  };
  CHECK(appended(R"(AB\/CAB\/C)") == "");
  CHECK(appended(R"(AB\\C)") == "invalid_audio");
}

TEST_CASE("what a live session cannot use is refused by name") {
  const auto fault = [](const json& session) {
    live_driver server;
    const auto told = server.start(session);
    const auto error = last(told, "error");
    return error.is_null()
               ? "accepted"
               : error["error"]["code"].get<std::string>() + " " + error["error"]["param"].get<std::string>();
  };
  CHECK(fault({{"voice", "max"}}) == "unknown_parameter session.voice");
  CHECK(fault({{"audio", {{"input", json::object()}}}}) == "unknown_parameter session.audio.input");
  CHECK(fault({{"audio", {{"output", {{"speed", 2}}}}}}) == "unknown_parameter session.audio.output.speed");
  const auto delegated = [](const char* name) {
    const json tool{{"type", "function"}, {"name", name}, {"parameters", {{"type", "object"}}}};
    return json{{"delegation", {{"type", "responses"}, {"responses", {{"tools", {{{"type", "web_search"}}, tool}}}}}}};
  };
  CHECK(fault(delegated("get_weather")) == "accepted");
  CHECK(fault(delegated("get.weather")) == "invalid_value session.delegation.responses.tools[1].name");
  live_driver server;
  server.begin();
  CHECK(code_of(server.send({{"type", "session.update"}, {"session", {{"instructions", "x"}}}})) ==
        "unknown_parameter");
  CHECK(
      code_of(server.send({{"type", "session.update"}, {"session", {{"delegation", {{"type", "client"}}}}}})).empty());
}
