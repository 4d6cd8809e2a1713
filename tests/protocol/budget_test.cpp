#include "protocol/realtime/budget.hpp"

#include "protocol/media/base64.hpp"
#include "tests/protocol/live_driver.hpp"
#include "tests/protocol/realtime_driver.hpp"

#include <catch2/catch.hpp>

#include <span>
#include <string>
#include <vector>

// What clients of OpenAI's dialects may have done for them.
using namespace parley::tests;
using nlohmann::json;
using parley::protocol::mode;
using std::chrono::milliseconds;
using std::chrono::seconds;
namespace rt = parley::protocol::realtime;

namespace {

const json manual = {{"audio", {{"input", {{"format", {{"type", "audio/pcmu"}}}, {"turn_detection", nullptr}}}}}};
const json none_answered = {{"audio",
                             {{"input",
                               {{"format", {{"type", "audio/pcmu"}}},
                                {"turn_detection", {{"type", "server_vad"}, {"create_response", false}}}}}}}};

/// So many seconds of mu-law silence, as base64.
std::string mu_law(int seconds) {
  const std::string bytes(static_cast<std::size_t>(seconds) * 8000, '\xff');
  std::string out;
  parley::protocol::base64::append(std::as_bytes(std::span(bytes)), out);
  return out;
}

json append(std::string audio) {
  return {{"type", "input_audio_buffer.append"}, {"audio", std::move(audio)}};
}

json message(json content) {
  return {{"type", "message"}, {"role", "user"}, {"content", std::move(content)}};
}

json heard(int seconds) {
  return {{"type", "input_audio"}, {"audio", mu_law(seconds)}};
}

json text(std::size_t bytes) {
  return {{"type", "input_text"}, {"text", std::string(bytes, 'x')}};
}

std::string refusal_of(const std::vector<json>& events) {
  const auto error = last(events, "error");
  if (error.is_null()) return "";
  const auto param = error["error"].value("param", json());
  return error["error"]["code"].get<std::string>() + (param.is_null() ? "" : " " + param.get<std::string>());
}

} // namespace

TEST_CASE("one append may have five minutes of sound and 15 MiB, which is judged before it is decoded") {
  realtime_driver server;
  server.update(manual);
  CHECK(refusal_of(server.send(append(mu_law(300)))).empty());
  CHECK(last(server.send({{"type", "input_audio_buffer.commit"}}), "input_audio_buffer.committed").is_object());
  CHECK(refusal_of(server.send(append(mu_law(301)))) == "invalid_value audio");
  const auto told = last(server.send(append(std::string(301 * 8000 * 4 / 3 / 4 * 4, '!'))), "error")["error"];
  CHECK(told["message"].get<std::string>().find("300 s") != std::string::npos); // not that it isn't base64
  server.update({{"audio", {{"input", {{"format", {{"type", "audio/pcm"}, {"rate", 24000}}}}}}}});
  CHECK(refusal_of(server.send(append(std::string(15u << 20, 'A')))).empty()); // 245.76 s
  CHECK(refusal_of(server.send(append(std::string((15u << 20) + 4, 'A')))) == "invalid_value audio");
}

TEST_CASE("the sound of all items of one event is judged together, before it is decoded") {
  realtime_driver server;
  server.update(manual);
  CHECK(refusal_of(server.send({{"type", "conversation.item.create"}, {"item", message({heard(100), heard(200)})}}))
            .empty());
  CHECK(refusal_of(server.send({{"type", "conversation.item.create"}, {"item", message({heard(100), heard(201)})}})) ==
        "invalid_value item.content.audio");
  const json input = {message({heard(200)}), message({heard(101)})};
  CHECK(refusal_of(
            server.send({{"type", "response.create"}, {"response", {{"conversation", "none"}, {"input", input}}}})) ==
        "invalid_value response.input.content.audio");
}

TEST_CASE("sound may come ten minutes ahead of time, and then no faster than it") {
  realtime_driver server;
  server.update(none_answered);
  for (int i = 0; i < 10; ++i) CHECK(refusal_of(server.send(append(mu_law(61)))).empty());
  CHECK(refusal_of(server.send(append(mu_law(61)))) == "rate_limit_exceeded audio");
  server.wait(seconds(6)); // 10 of the owner and 1.25 of the connection each second
  CHECK(refusal_of(server.send(append(mu_law(61)))).empty());
  CHECK(refusal_of(server.send(append(mu_law(61)))) == "rate_limit_exceeded audio");
  SECTION("what comes at the pace of a microphone is never too fast") {
    for (int i = 0; i < 100; ++i) {
      server.wait(seconds(1));
      CHECK(refusal_of(server.send(append(mu_law(1)))).empty());
    }
  }
  SECTION("sound in items counts as well") {
    CHECK(refusal_of(server.send({{"type", "conversation.item.create"}, {"item", message({heard(60)})}})) ==
          "rate_limit_exceeded item.content.audio");
  }
}

TEST_CASE("connections of an owner share what exceeds the pace, and none has to wait for its own") {
  const auto owner = std::make_shared<rt::owner_budget>();
  rt::machine_terms terms;
  terms.owner = owner;
  realtime_driver first(true, 1, terms), second(true, 2, terms), unrelated;
  for (auto* each : {&first, &second, &unrelated}) each->update(none_answered);
  CHECK(refusal_of(first.send(append(mu_law(300)))).empty());
  CHECK(refusal_of(first.send(append(mu_law(300)))).empty());
  CHECK(refusal_of(second.send(append(mu_law(60)))) == "rate_limit_exceeded audio");
  CHECK(refusal_of(second.send(append(mu_law(10)))).empty());
  CHECK(refusal_of(unrelated.send(append(mu_law(60)))).empty());
  CHECK_FALSE(owner->full(rt::budget_time(std::chrono::hours(1))));
  CHECK(owner->full(rt::budget_time(std::chrono::hours(2))));
}

TEST_CASE("in Live too, sound is judged before it is decoded, and may come so far ahead of time") {
  const json pcmu = {{"audio", {{"format", {{"type", "audio/pcmu"}, {"rate", 8000}}}}}};
  const auto hears = [](std::string audio) {
    return json{{"type", "session.input_audio.append"}, {"audio", std::move(audio)}};
  };
  live_driver server;
  server.begin(pcmu);
  CHECK(refusal_of(server.send(hears(mu_law(301)))) == "invalid_audio audio");
  for (int i = 0; i < 10; ++i) CHECK(refusal_of(server.send(hears(mu_law(61)))).empty());
  CHECK(refusal_of(server.send(hears(mu_law(61)))) == "rate_limit_exceeded audio");
}

TEST_CASE("what a Live session begins with is bounded as a conversation is") {
  const auto told = [](const json& input) {
    live_driver server;
    const json session = {
        {"model", "any"}, {"audio", {{"format", {{"type", "audio/pcmu"}, {"rate", 8000}}}}}, {"input", input}};
    return refusal_of(server.send({{"type", "session.start"}, {"session", session}}));
  };
  json many = json::array();
  for (int i = 0; i < 128; ++i) many.push_back(message({text(4000)}));
  CHECK(told(many).empty());
  many.push_back(message({text(1)}));
  CHECK(told(many) == "invalid_value session.input");
  CHECK(told({message({text(300u << 10)}), message({text(213u << 10)})}) == "invalid_value session.input");
  CHECK(told({message({heard(150)}), message({heard(150)})}).empty());
  CHECK(told({message({heard(150)}), message({heard(151)})}) == "invalid_value session.input.content.audio");
  json twins = {message({text(1)}), message({text(2)})};
  for (auto& each : twins) each["id"] = "the same";
  CHECK(told(twins).empty());
}

TEST_CASE("a Live session that has started reads no other start") {
  live_driver server;
  server.begin();
  const std::string wrong =
      R"({"type":"session.start","session":{"model":"any","input":[{"type":"message","role":"user",
      "content":[{"type":"input_audio","audio":"!"}]}]}})";
  CHECK(refusal_of(server.send_text(wrong)) == "session_already_started type");
}

TEST_CASE("responses that are asked for and cancelled open few sessions, and the next one is answered") {
  realtime_driver server;
  server.update(manual);
  for (int i = 0; i < 1000; ++i) {
    server.send({{"type", "response.create"}});
    server.send({{"type", "response.cancel"}});
  }
  CHECK(server.opened() == 72); // 8 of the connection, 64 of its owner
  CHECK(server.unused() == 72);
  server.send({{"type", "response.create"}});
  CHECK_FALSE(server.open());
  server.wait(milliseconds(100)); // the owner gets 16 a second
  REQUIRE(server.open() == mode::chat);
  server.grant();
  server.chat_delta("Yes.");
  CHECK(last(server.chat_done(), "response.done")["response"]["status"] == "completed");
  CHECK(server.unused() == 72);
}

TEST_CASE("a response that is cancelled while it is made has used its session") {
  realtime_driver server;
  server.update(manual);
  server.send({{"type", "response.create"}});
  server.grant();
  server.send({{"type", "response.cancel"}});
  CHECK(server.opened() == 1);
  CHECK(server.unused() == 0);
  server.send({{"type", "response.create"}});
  server.inner_closes(); // the server's doing, not the client's
  CHECK(server.unused() == 0);
}

TEST_CASE("a response beside one that is played waits for its session too") {
  realtime_driver server;
  server.update({{"audio", {{"input", {{"turn_detection", {{"type", "server_vad"}}}}}}}});
  for (int i = 0; i < 72; ++i) {
    server.send({{"type", "response.create"}});
    if (i < 71) server.send({{"type", "response.cancel"}});
  }
  REQUIRE(server.open());
  server.grant();
  server.chat_delta("One two three.", 3);
  server.chat_done();
  server.send({{"type", "response.create"}, {"response", {{"conversation", "none"}}}});
  CHECK_FALSE(server.open());
  server.wait(milliseconds(100));
  REQUIRE(server.open() == mode::chat);
  server.grant();
  server.chat_delta("beside", 0.1);
  CHECK(last(server.chat_done(), "response.done")["response"]["conversation_id"].is_null());
  server.wait(seconds(4));
  server.seen().check_quiet();
}

TEST_CASE("a client that may start no more sessions gets no response, and is told why") {
  bool left = true;
  rt::machine_terms terms;
  terms.may_start = [&](auto) { return left; };
  realtime_driver server(true, 1, terms);
  server.update(manual);
  server.send({{"type", "response.create"}});
  left = false;
  for (int i = 0; i < 3; ++i) server.send({{"type", "response.create"}, {"response", {{"conversation", "none"}}}});
  server.grant();
  server.chat_delta("Yes.");
  const auto after = server.chat_done();
  std::vector<std::string> ends;
  for (const auto& each : after)
    if (each["type"] == "response.done") ends.push_back(each["response"]["status"]);
  CHECK(ends == std::vector<std::string>{"completed", "failed", "failed", "failed"});
  CHECK(last(after, "response.done")["response"]["status_details"]["error"]["code"] == "rate_limit_exceeded");
  CHECK(server.opened() == 1);
  left = true;
  server.send({{"type", "response.create"}});
  CHECK(server.open() == mode::chat);
}

TEST_CASE("without a session to start, a user who speaks is told so") {
  rt::machine_terms terms;
  terms.may_start = [](auto) { return false; };
  realtime_driver server(true, 1, terms);
  server.hear(tone(1));
  const auto after = server.hear(quiet(1));
  CHECK(server.opened() == 0);
  CHECK(last(after, "response.done")["response"]["status"] == "failed");
}

TEST_CASE("a small event does not make the server repeat much, again and again") {
  realtime_driver server;
  server.update({{"instructions", std::string(32'000, 'x')}});
  const auto repeated = [&](const json& event) {
    std::size_t bytes = 0;
    for (int i = 0; i < 30; ++i)
      for (const auto& each : server.send(event)) bytes += each.dump().size();
    return bytes;
  };
  SECTION("the session") {
    const json small = {{"type", "session.update"}, {"session", {{"type", "realtime"}}}};
    for (int i = 0; i < 70; ++i) server.send(small); // 65 are 2 MiB
    CHECK(repeated(small) < 64'000);
    CHECK(refusal_of(server.send(small)) == "rate_limit_exceeded");
    server.wait(seconds(1));
    CHECK(last(server.send(small), "session.updated").is_object());
  }
  SECTION("an item") {
    const auto id =
        server.send({{"type", "conversation.item.create"}, {"item", message({text(500'000)})}}).at(0)["item"]["id"];
    const json small = {{"type", "conversation.item.retrieve"}, {"item_id", id}};
    for (int i = 0; i < 4; ++i) CHECK(last(server.send(small), "conversation.item.retrieved").is_object());
    CHECK(repeated(small) < 64'000);
    server.wait(seconds(8));
    CHECK(last(server.send(small), "conversation.item.retrieved").is_object());
  }
}

TEST_CASE("a conversation of the server's own items stays bounded") {
  realtime_driver server;
  server.update(manual);
  std::vector<std::string> made;
  const std::string tenth = mu_law(1).substr(0, 1068); // 801 samples
  for (int i = 0; i < 1100; ++i) {
    server.send(append(tenth));
    made.push_back(last(server.send({{"type", "input_audio_buffer.commit"}}), "conversation.item.added")["item"]["id"]);
    server.wait(milliseconds(100));
  }
  const auto retrieved = [&](std::size_t at) {
    return last(server.send({{"type", "conversation.item.retrieve"}, {"item_id", made[at]}}),
                "conversation.item.retrieved");
  };
  CHECK(retrieved(1100 - 1025).is_null());
  CHECK(retrieved(1100 - 1024).is_object());
  CHECK(retrieved(1099).is_object());
}
