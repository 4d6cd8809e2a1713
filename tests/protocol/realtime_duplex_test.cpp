#include "protocol/guest/duplex_feed.hpp"
#include "tests/protocol/realtime_driver.hpp"
#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace parley::tests;
using parley::protocol::mode;
using std::chrono::milliseconds;
using names = std::vector<std::string>;

namespace {

/// Samples of all appends that the inner session got since the last look.
struct heard {
  std::size_t samples = 0;
  bool forced = false;
};

heard appended(const std::vector<nlohmann::json>& asked) {
  heard out;
  for (const auto& each : asked) {
    if (each["type"] != "input.append" || !each["input"].contains("audio")) continue;
    out.samples += each["input"]["audio"].get<std::string>().size() * 3 / 16; // float32 in base64
    out.forced = out.forced || each["input"].value("force_listen", false);
  }
  return out;
}

/// The text that the inner session got since the last look.
names told(const std::vector<nlohmann::json>& asked) {
  names out;
  for (const auto& each : asked)
    if (each["type"] == "input.append")
      for (const auto& one : each["input"].value("context", nlohmann::json::array()))
        out.push_back(one["role"].get<std::string>() + ": " + one["content"].get<std::string>());
  return out;
}

nlohmann::json typed(const std::string& text, const std::string& role = "user") {
  return {{"type", "conversation.item.create"},
          {"item", {{"type", "message"}, {"role", role}, {"content", {{{"type", "input_text"}, {"text", text}}}}}}};
}

/// What a client sends of its camera; `height` tells the pictures apart.
nlohmann::json view(int height) {
  return {{"type", "conversation.item.create"},
          {"item",
           {{"type", "message"},
            {"role", "user"},
            {"content",
             {{{"type", "input_image"},
               {"image_url", "data:image/jpeg;base64," + parley::protocol::test::jpeg(64, height)}}}}}}};
}

/// How many pictures each append of these has.
std::vector<std::size_t> pictures(const std::vector<nlohmann::json>& asked) {
  std::vector<std::size_t> out;
  for (const auto& each : asked)
    if (each["type"] == "input.append" && each["input"].contains("audio"))
      out.push_back(each["input"].value("video_frames", nlohmann::json::array()).size());
  return out;
}

/// A server in its default state, to which somebody speaks.
void begin(realtime_driver& server) {
  server.hear(quiet(1));
  CHECK_FALSE(server.open()); // a silent microphone needs no slot
  server.hear(tone(1));
  REQUIRE(server.open() == mode::audio);
  server.grant();
}

} // namespace

TEST_CASE("a duplex session hears what the client sends, and speaks when it wants to") {
  realtime_driver server;
  begin(server);
  const auto asked = server.asked();
  CHECK(asked[0]["payload"]["config"]["force_listen_count"] == 0);
  CHECK(appended(asked).samples >= 16'000);
  CHECK(types(server.listens()).empty());
  const auto ended = server.hear(quiet(1));
  CHECK(types(ended) == names{"input_audio_buffer.speech_stopped", "input_audio_buffer.committed",
                              "conversation.item.added", "conversation.item.done"});
  const auto said = server.speaks("resp_a", "My name", 1);
  CHECK(types(said) == names{"response.created", "response.output_item.added", "conversation.item.added",
                             "response.content_part.added", "response.output_audio_transcript.delta",
                             "response.output_audio.delta"});
  const auto done = server.speaks("resp_a", " is Parley.", 0.5, true);
  const auto response = last(done, "response.done")["response"];
  CHECK(response["status"] == "completed");
  CHECK(response["output"][0]["content"][0]["transcript"] == "My name is Parley.");
  CHECK(response["usage"]["total_tokens"] == 90);
  CHECK(types(server.listens()).empty());
  CHECK(server.open() == mode::audio);
  server.seen().check_quiet();
}

TEST_CASE("a burst of sound is passed on at the pace of the answers, and nothing is lost") {
  realtime_driver server;
  begin(server);
  std::size_t got = appended(server.asked()).samples;
  for (int i = 0; i < 10; ++i) {
    parley::protocol::speech::sound_encoder encoder({});
    server.send({{"type", "input_audio_buffer.append"}, {"audio", encoder.feed(tone(1))}});
  }
  got += appended(server.asked()).samples;
  CHECK(got == 32'000);
  for (int i = 0; i < 12; ++i) server.listens();
  got += appended(server.asked()).samples;
  CHECK(got >= 11 * 16'000);
}

TEST_CASE("of more sound than may wait the oldest whole units go") {
  parley::protocol::guest::duplex_feed feed(3);
  CHECK(feed.hear(std::vector<float>(48'000)) == 0);
  CHECK(feed.hear(std::vector<float>(1)) == 1);
  CHECK(feed.waiting_samples() == 32'001);
  CHECK(feed.hear(std::vector<float>(168'000)) == 10);
  CHECK(feed.waiting_samples() == 40'001);
}

TEST_CASE("speech breaks off what a duplex session says; a short sound does not") {
  realtime_driver server;
  begin(server);
  server.listens();
  server.hear(quiet(1));
  server.speaks("resp_a", "A long story", 1);
  server.asked();
  server.hear(tone(0.3));
  server.hear(quiet(0.7));
  CHECK(last(server.events(), "response.done").is_null());
  CHECK_FALSE(appended(server.asked()).forced);
  const auto cut = server.hear(tone(0.8));
  CHECK(last(cut, "response.done")["response"]["status_details"]["reason"] == "turn_detected");
  CHECK(types(cut).front() == "input_audio_buffer.speech_started");
  CHECK(appended(server.asked()).forced);
  CHECK(types(server.speaks("resp_a", " goes on", 1)).empty()); // it was on its way
  server.listens();
  server.hear(quiet(1));
  CHECK(types(server.speaks("resp_b", "Yes?", 1)).front() == "response.created");
}

TEST_CASE("if the model begins before the turn has ended, the turn ends first") {
  realtime_driver server;
  begin(server);
  const auto said = server.speaks("resp_a", "Oh!", 1);
  const auto order = types(said);
  REQUIRE(order.size() > 5);
  CHECK(names(order.begin(), order.begin() + 5) == names{"input_audio_buffer.speech_stopped",
                                                         "input_audio_buffer.committed", "conversation.item.added",
                                                         "conversation.item.done", "response.created"});
}

TEST_CASE("a requested response is a chat turn in this lane too; the duplex session comes back with what was said") {
  realtime_driver server;
  server.update({{"instructions", "Be kind."}});
  begin(server);
  server.listens();
  server.hear(quiet(1));
  server.asked();
  server.send({{"type", "response.create"}});
  REQUIRE(server.open() == mode::chat);
  server.grant();
  server.chat_delta("Hello.");
  server.chat_done();
  CHECK_FALSE(server.open());
  server.hear(tone(1));
  REQUIRE(server.open() == mode::audio);
  const auto prompt = last(server.asked(), "session.init")["payload"]["system_prompt"].get<std::string>();
  CHECK(prompt == "Be kind.\n\nConversation so far:\nUser: (spoken) \nYou: Hello. \n");
}

TEST_CASE("a client that stops sending lets the model finish") {
  realtime_driver server;
  begin(server);
  server.listens();
  server.hear(quiet(1));
  server.speaks("resp_a", "A long story", 1);
  server.asked();
  server.wait(milliseconds(2500));
  CHECK(appended(server.asked()).samples >= 16'000); // silence, a second at a time
}

TEST_CASE("a duplex session without speech gives its slot back, as does one that was closed") {
  realtime_driver server;
  begin(server);
  server.listens();
  server.hear(quiet(1));
  CHECK(server.open() == mode::audio);
  server.wait(std::chrono::seconds(61));
  CHECK_FALSE(server.open());
  server.hear(tone(1));
  CHECK(server.open() == mode::audio);
  server.grant();
  server.inner_closes(); // in the middle of a turn: the next one hears the rest
  CHECK(server.open() == mode::audio);
  server.seen().check_quiet();
}

TEST_CASE("a turn that finds no slot gets a response that says so") {
  realtime_driver server;
  server.hear(tone(1));
  REQUIRE(server.open() == mode::audio);
  server.inner_closes();
  CHECK_FALSE(server.open());
  const auto ended = server.hear(quiet(1));
  CHECK(last(ended, "response.done")["response"]["status_details"]["error"]["code"] == "server_busy");
  server.hear(tone(1));
  CHECK(server.open() == mode::audio);
  server.wait(std::chrono::seconds(9));
  CHECK_FALSE(server.open());
}

TEST_CASE("with tools, answers come from chat, where the next turn waits for the last one's end") {
  realtime_driver server;
  server.update({{"tools", {{{"type", "function"}, {"name", "f"}}}}});
  server.hear(tone(1));
  CHECK_FALSE(server.open());
  server.hear(quiet(1));
  CHECK(server.open() == mode::chat);
}

TEST_CASE("whatever happens in whatever order, clients are told in order") {
  const auto seed = GENERATE(range(1u, 13u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  realtime_driver server(true, seed);
  const auto pick = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  int engine = 0;
  std::string speaking;
  for (int step = 0; step < 300 && !server.ended(); ++step) {
    switch (pick(16)) {
    case 0:
    case 1: server.hear(tone(0.1 * pick(8))); break;
    case 2:
    case 3: server.hear(quiet(0.1 * pick(12))); break;
    case 4: server.send({{"type", "response.create"}}); break;
    case 5: server.send({{"type", "response.cancel"}}); break;
    case 6: server.send({{"type", "response.create"}, {"response", {{"conversation", "none"}}}}); break;
    case 7: server.send({{"type", "input_audio_buffer.commit"}}); break;
    case 8: {
      const names kinds{"server_vad", "semantic_vad"};
      const nlohmann::json turns =
          pick(3) == 0 ? nlohmann::json(nullptr) : nlohmann::json{{"type", kinds[static_cast<std::size_t>(pick(2))]}};
      server.update({{"audio", {{"input", {{"turn_detection", turns}}}}}});
      break;
    }
    case 9:
      server.send(
          {{"type", "conversation.item.create"},
           {"item", {{"type", "message"}, {"role", "user"}, {"content", {{{"type", "input_text"}, {"text", "x"}}}}}}});
      break;
    case 10: server.wait(milliseconds(100 * pick(30))); break;
    case 11: {
      const auto added = last(server.events(), "conversation.item.added");
      if (added.is_object())
        server.send({{"type", pick(2) == 0 ? "conversation.item.delete" : "conversation.item.truncate"},
                     {"item_id", added["item"]["id"]},
                     {"content_index", 0},
                     {"audio_end_ms", 100}});
      break;
    }
    case 12: server.send({{"type", "input_audio_buffer.clear"}}); break;
    default:
      if (!server.open()) break;
      if (last(server.asked(), "session.init").is_object()) {
        server.grant();
        speaking.clear();
        break;
      }
      if (pick(12) == 0) {
        server.inner_closes();
      } else if (server.open() == mode::chat) {
        pick(3) == 0 ? server.chat_done() : server.chat_delta(pick(2) == 0 ? "word " : "", 0.3 * pick(3));
      } else if (pick(2) == 0) {
        server.listens();
        speaking.clear();
      } else {
        if (speaking.empty()) speaking = "resp_" + std::to_string(++engine);
        const bool ends = pick(4) == 0;
        server.speaks(speaking, "word ", 0.5, ends);
        if (ends) speaking.clear();
      }
    }
  }
  if (!server.ended()) {
    server.update({{"audio", {{"input", {{"turn_detection", nullptr}}}}}});
    server.wait(std::chrono::seconds(100)); // whatever waits for a slot gives up
    if (server.open()) server.inner_closes();
    server.wait(std::chrono::seconds(100));
    server.seen().check_quiet();
  }
}

TEST_CASE("what a camera sees goes to a session of video, with the next second") {
  realtime_driver server;
  const auto shown = server.send(view(10));
  CHECK(types(shown) == names{"conversation.item.added", "conversation.item.done"});
  server.send(view(11));
  server.hear(quiet(1));
  server.hear(tone(1));
  REQUIRE(server.open() == mode::video);
  server.grant();
  auto asked = server.asked();
  CHECK(last(asked, "session.init")["payload"]["system_prompt"] == "Conversation so far:\nUser: (a picture) \n");
  CHECK(pictures(asked) == std::vector<std::size_t>{1}); // the newest of those from before
  const auto sent = last(asked, "input.append")["input"]["video_frames"][0].get<std::string>();
  CHECK(sent == parley::protocol::test::jpeg(64, 11));

  server.listens();
  for (int height = 20; height < 26; ++height) server.send(view(height));
  server.hear(tone(1));
  server.hear(tone(1));
  asked = server.asked();
  CHECK(pictures(asked) == std::vector<std::size_t>{4, 0});
  CHECK(server.open() == mode::video); // the session goes on
  server.seen().check_quiet();
}

TEST_CASE("a camera that is switched on during a conversation reopens it when nobody speaks") {
  realtime_driver server;
  begin(server);
  server.listens();
  server.send(view(10));
  CHECK(server.open() == mode::audio);
  server.hear(quiet(1));
  CHECK_FALSE(server.open());
  server.hear(tone(1));
  CHECK(server.open() == mode::video);
}

TEST_CASE("without full duplex a camera's newest four pictures are part of the conversation") {
  realtime_driver server;
  server.update({{"audio", {{"input", {{"turn_detection", nullptr}}}}}});
  for (int height = 10; height < 16; ++height) server.send(view(height));
  server.send({{"type", "response.create"}});
  REQUIRE(server.open() == mode::chat);
  server.grant();
  const auto content = last(server.asked(), "input.append")["input"]["messages"][0]["content"];
  REQUIRE(content.size() == 4);
  CHECK(content[0]["data"] == parley::protocol::test::jpeg(64, 12));
}

TEST_CASE("a result that does not follow its call says whose it is, to a duplex session") {
  realtime_driver server;
  begin(server);
  server.listens();
  server.asked();
  const auto create = [&](nlohmann::json item) {
    server.send({{"type", "conversation.item.create"}, {"item", std::move(item)}});
  };
  for (const auto* id : {"a", "b"})
    create(
        {{"type", "function_call"}, {"call_id", id}, {"name", "f"}, {"arguments", nlohmann::json{{"x", id}}.dump()}});
  for (const auto* id : {"b", "a"})
    create({{"type", "function_call_output"}, {"call_id", id}, {"output", std::string("of ") + id}});
  create({{"type", "function_call"}, {"call_id", "c"}, {"name", "f"}, {"arguments", "{}"}});
  create({{"type", "function_call_output"}, {"call_id", "c"}, {"output", "of c"}});
  CHECK(told(server.asked()) == names{"assistant: f({\"x\":\"a\"})", "assistant: f({\"x\":\"b\"})", "tool: of b",
                                      "tool: f({\"x\":\"a\"}): of a", "assistant: f({})", "tool: of c"});
}

TEST_CASE("what is typed, returned by a function or changed reaches the running duplex session at once") {
  realtime_driver server;
  begin(server);
  server.listens();
  server.asked();
  server.send(typed("I am Ada."));
  CHECK(told(server.asked()) == names{"user: I am Ada."}); // in the middle of the user's turn
  server.hear(quiet(1));
  server.asked();
  server.send(typed("Be fair.", "system"));
  server.send(typed("Indeed.", "assistant"));
  server.send(
      {{"type", "conversation.item.create"},
       {"item", {{"type", "function_call"}, {"call_id", "call_1"}, {"name", "f"}, {"arguments", "{\"b\":2}"}}}});
  server.send({{"type", "conversation.item.create"},
               {"item", {{"type", "function_call_output"}, {"call_id", "call_1"}, {"output", "{\"a\":1}"}}}});
  server.update({{"instructions", "Speak French."}});
  server.update({{"instructions", "Speak French."}});
  CHECK(told(server.asked()) == names{"system: Be fair.", "assistant: Indeed.", "assistant: f({\"b\":2})",
                                      "tool: {\"a\":1}", "system: Speak French."});
  server.listens();
  server.hear(tone(1));
  CHECK(server.open() == mode::audio);
  const auto later = server.asked();
  CHECK(last(later, "session.init").is_null()); // it is the session that it was
  CHECK(told(later).empty());                   // each is told once
  server.seen().check_quiet();
}

TEST_CASE("what is new while a duplex session waits for its slot is told as soon as it is there") {
  realtime_driver server;
  server.send(typed("before"));
  server.hear(tone(1));
  REQUIRE(server.open() == mode::audio);
  server.send(typed("meanwhile"));
  auto asked = server.asked();
  CHECK(last(asked, "session.init")["payload"]["system_prompt"] == "Conversation so far:\nUser: before \n");
  CHECK(told(asked).empty());
  server.grant();
  asked = server.asked();
  CHECK(told(asked) == names{"user: meanwhile"});
  CHECK(asked.front()["input"].contains("context")); // before the sound
}

TEST_CASE("what cannot be told a running duplex session opens another when nobody speaks") {
  const auto text = GENERATE(as<std::string>(), "too long", "in between", "silent", "too much");
  CAPTURE(text);
  realtime_driver server;
  server.send(typed("first"));
  begin(server);
  server.listens();
  if (text == "too long") {
    server.send(typed(std::string(8193, 'x')));
  } else if (text == "in between") {
    auto item = typed("second");
    item["previous_item_id"] = "root";
    server.send(item);
  } else if (text == "silent") {
    server.update({{"output_modalities", {"text"}}});
  } else {
    server.send(typed(std::string(5000, 'x')));
    server.send(typed(std::string(5000, 'x'))); // no second has read the first one yet
  }
  CHECK(server.open() == mode::audio);
  server.hear(quiet(1));
  CHECK_FALSE(server.open());
  server.hear(tone(1));
  CHECK(server.open() == mode::audio);
}

TEST_CASE("text that the model has read makes room for more") {
  realtime_driver server;
  begin(server);
  server.listens();
  for (int i = 0; i < 6; ++i) {
    server.send(typed(std::string(5000, 'x')));
    server.hear(quiet(1));
    server.listens();
    server.listens();
  }
  const auto asked = server.asked();
  CHECK(told(asked).size() == 6);
  CHECK(server.open() == mode::audio);
}

TEST_CASE("if a second is lost, what it may have been told is told by another session") {
  realtime_driver server;
  begin(server);
  server.listens();
  server.hear(quiet(1));
  server.inner(R"({"type":"error","error":{"code":"inference_error","message":"x","type":"server_error"}})");
  CHECK(server.open() == mode::audio);
  server.send(typed("I am Ada."));
  server.inner(R"({"type":"error","error":{"code":"inference_error","message":"x","type":"server_error"}})");
  CHECK_FALSE(server.open());
  server.hear(tone(1));
  const auto prompt = last(server.asked(), "session.init")["payload"]["system_prompt"].get<std::string>();
  CHECK(prompt.find("User: I am Ada.") != std::string::npos);
}

TEST_CASE("text that comes while the model speaks is told when it has ended") {
  realtime_driver server;
  begin(server);
  server.listens();
  server.hear(quiet(1));
  server.speaks("resp_a", "My name", 1);
  server.asked();
  server.update({{"instructions", "Speak French."}});
  server.send(typed("I am Ada."));
  server.hear(quiet(1));
  auto asked = server.asked();
  CHECK(told(asked).empty());
  CHECK(appended(asked).samples > 0);
  server.speaks("resp_a", " is Parley.", 0.5, true);
  asked = server.asked();
  CHECK(told(asked) == names{"system: Speak French.", "user: I am Ada."});
  CHECK(last(asked, "session.init").is_null());
  server.seen().check_quiet();
}

TEST_CASE("text that waits for the end of an answer is told before the sound that broke it off") {
  realtime_driver server;
  begin(server);
  server.listens();
  server.hear(quiet(1));
  server.speaks("resp_a", "A long story", 1);
  server.send(typed("I am Ada."));
  server.asked();
  server.hear(tone(0.8));
  const auto asked = server.asked();
  CHECK(told(asked) == names{"user: I am Ada."});
  CHECK(appended(asked).forced);
}

TEST_CASE("a client that falls silent with its question is heard out, until the model speaks or has had its time") {
  realtime_driver server;
  begin(server);
  server.listens();
  server.wait(milliseconds(1500)); // the turn ends
  REQUIRE(last(server.events(), "input_audio_buffer.committed").is_object());
  server.asked();
  std::size_t heard = 0;
  const auto wait = [&](milliseconds time) {
    server.wait(time);
    server.listens();
    return heard = appended(server.asked()).samples;
  };
  CHECK(wait(milliseconds(1000)) > 0);
  SECTION("it speaks") {
    server.speaks("resp_a", "My name is Parley.", 1, true);
    wait(milliseconds(1000)); // what waited
    CHECK(wait(milliseconds(3000)) == 0);
  }
  SECTION("it does not") {
    CHECK(wait(milliseconds(1000)) > 0);
    wait(milliseconds(2000));
    CHECK(wait(milliseconds(3000)) == 0);
    server.hear(tone(1)); // and hears the next one
    CHECK(appended(server.asked()).samples > 0);
  }
  server.seen().check_quiet();
}

TEST_CASE("what a duplex session says ends when the client cuts it, if it may be interrupted") {
  const bool interrupts = GENERATE(true, false);
  realtime_driver server;
  server.update(
      {{"audio", {{"input", {{"turn_detection", {{"type", "semantic_vad"}, {"interrupt_response", interrupts}}}}}}}});
  begin(server);
  server.listens();
  server.hear(quiet(1));
  const auto item = last(server.speaks("resp_a", "A long story", 1), "response.output_item.added")["item"]["id"];
  server.asked();
  const auto cut = server.send(
      {{"type", "conversation.item.truncate"}, {"item_id", item}, {"content_index", 0}, {"audio_end_ms", 300}});
  CHECK(types(cut).back() == "conversation.item.truncated");
  const auto done = last(cut, "response.done");
  REQUIRE(done.is_object() == interrupts);
  if (interrupts) CHECK(done["response"]["status_details"]["reason"] == "client_cancelled");
  server.hear(quiet(0.5));
  CHECK(appended(server.asked()).forced == interrupts);
  CHECK(server.speaks("resp_a", " goes on", 1).empty() == interrupts);
}
