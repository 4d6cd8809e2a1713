#include "tests/protocol/live_driver.hpp"
#include "tests/protocol/realtime_driver.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

// What clients do at the edges: cancel late, cut what is being said, ask beside what is being said, send too much.
using namespace parley::tests;
using nlohmann::json;
using parley::protocol::mode;
using std::chrono::milliseconds;

namespace {

json user_says(const std::string& text) {
  return {{"type", "conversation.item.create"},
          {"item", {{"type", "message"}, {"role", "user"}, {"content", {{{"type", "input_text"}, {"text", text}}}}}}};
}

json respond(json with = json::object()) {
  return {{"type", "response.create"}, {"response", std::move(with)}};
}

std::string refusal_of(const std::vector<json>& events) {
  const auto error = last(events, "error");
  if (error.is_null()) return "";
  const auto param = error["error"]["param"];
  return error["error"]["code"].get<std::string>() + (param.is_null() ? "" : " " + param.get<std::string>());
}

const json vad = {{"audio", {{"input", {{"turn_detection", {{"type", "server_vad"}}}}}}}};

/// An answer of ten seconds that has been made and is being played.
std::string play_long_answer(realtime_driver& server) {
  server.update(vad);
  const auto created = last(server.send(respond()), "response.created");
  server.grant();
  server.chat_delta("One two three four five six seven eight nine ten.", 10);
  server.chat_done();
  return created["response"]["id"];
}

} // namespace

TEST_CASE("what is asked for out of band does not wait until an answer has been played") {
  realtime_driver server;
  const auto playing = play_long_answer(server);
  CHECK_FALSE(server.open());
  server.send(respond({{"conversation", "none"}, {"output_modalities", {"text"}}}));
  REQUIRE(server.open() == mode::chat);
  server.grant();
  server.chat_delta("beside");
  const auto done = last(server.chat_done(), "response.done")["response"];
  CHECK(done["conversation_id"].is_null());
  CHECK(done["status"] == "completed");
  CHECK(done["output"][0]["content"][0]["text"] == "beside");
  const auto later = server.wait(milliseconds(12'000));
  CHECK(last(later, "response.done")["response"]["id"] == playing);
  server.seen().check_quiet();
}

TEST_CASE("either of two answers may be cancelled by its id, and the other goes on") {
  realtime_driver server;
  const auto playing = play_long_answer(server);
  const auto beside =
      last(server.send(respond({{"conversation", "none"}})), "response.created")["response"]["id"].get<std::string>();
  server.grant();
  SECTION("the one beside it") {
    const auto cut = server.send({{"type", "response.cancel"}, {"response_id", beside}});
    CHECK(last(cut, "response.done")["response"]["id"] == beside);
    CHECK_FALSE(server.open());
    CHECK(last(server.wait(milliseconds(12'000)), "response.done")["response"]["id"] == playing);
  }
  SECTION("the one that is being played") {
    const auto cut = server.send({{"type", "response.cancel"}});
    CHECK(last(cut, "response.done")["response"]["id"] == playing);
    CHECK(server.open() == mode::chat);
    server.chat_delta("still here", 0.1);
    CHECK(last(server.chat_done(), "response.done")["response"]["status"] == "completed");
  }
  SECTION("the one beside it loses its worker") {
    const auto failed = server.inner_closes();
    CHECK(last(failed, "response.done")["response"]["id"] == beside);
    CHECK(last(failed, "response.done")["response"]["status"] == "failed");
    CHECK(last(server.wait(milliseconds(12'000)), "response.done")["response"]["status"] == "completed");
  }
  server.seen().check_quiet();
}

TEST_CASE("a cancel within a second of the end is no mistake, one with a wrong id is") {
  realtime_driver server;
  server.update({{"audio", {{"input", {{"turn_detection", nullptr}}}}}});
  server.send(respond());
  server.grant();
  CHECK(refusal_of(server.send({{"type", "response.cancel"}, {"response_id", "resp_none"}})) ==
        "response_cancel_not_active");
  server.chat_delta("Yes.", 0.1);
  server.chat_done();
  server.wait(milliseconds(900));
  CHECK(server.send({{"type", "response.cancel"}}).empty());
  server.wait(milliseconds(200));
  const auto late = last(server.send({{"type", "response.cancel"}}), "error")["error"];
  CHECK(late["code"] == "response_cancel_not_active");
  CHECK(late["message"].get<std::string>().starts_with("Cancellation failed"));
}

TEST_CASE("a cancel is no mistake either while the client may still play the answer") {
  realtime_driver server;
  server.update({{"audio", {{"input", {{"turn_detection", nullptr}}}}}});
  server.send(respond());
  server.grant();
  server.chat_delta("A long story.");
  server.chat_delta("", 5);
  CHECK(last(server.chat_done(), "response.done").is_object());
  server.wait(milliseconds(4800));
  CHECK(server.send({{"type", "response.cancel"}}).empty());
  server.wait(milliseconds(300));
  CHECK(refusal_of(server.send({{"type", "response.cancel"}})) == "response_cancel_not_active");
}

TEST_CASE("what a client cuts of an answer stays cut, even if more of it is said") {
  realtime_driver server;
  server.update({{"audio", {{"input", {{"turn_detection", nullptr}}}}}});
  const auto begun = server.send(respond());
  server.grant();
  const auto item = last(server.chat_delta("one two three four"), "response.output_item.added")["item"]["id"];
  server.chat_delta("", 4);
  const json cut = {
      {"type", "conversation.item.truncate"}, {"item_id", item}, {"content_index", 0}, {"audio_end_ms", 2000}};
  CHECK(last(server.send(cut), "conversation.item.truncated")["audio_end_ms"] == 2000);
  server.chat_delta(" five six");
  server.chat_delta("", 2);
  server.chat_done();
  const auto kept = server.send({{"type", "conversation.item.retrieve"}, {"item_id", item}}).at(0)["item"];
  CHECK(kept["content"][0]["transcript"] == "one two");
  CHECK(kept["status"] == "completed");
}

TEST_CASE("a duplex answer ends at the most tokens that it may have") {
  realtime_driver server;
  server.update({{"max_output_tokens", 6}});
  server.hear(tone(1));
  server.grant();
  server.hear(quiet(1));
  server.speaks("resp_1", "One", 1);
  const auto second = server.speaks("resp_1", " two", 1);
  const auto done = last(second, "response.done")["response"];
  CHECK(done["status"] == "incomplete");
  CHECK(done["status_details"]["reason"] == "max_output_tokens");
  CHECK(done["output"][0]["status"] == "incomplete");
  CHECK(done["output"][0]["content"][0]["transcript"] == "One two");
  server.hear(quiet(1));
  const auto frames = server.asked();
  CHECK(std::any_of(frames.begin(), frames.end(),
                    [](const json& each) { return each.value("input", json::object()).value("force_listen", false); }));
  CHECK(server.speaks("resp_1", " three", 1).empty());
  server.seen().check_quiet();
}

TEST_CASE("metadata is bounded as OpenAI bounds it") {
  realtime_driver server;
  const auto told = [&](const json& metadata) {
    return refusal_of(server.send(respond({{"conversation", "none"}, {"metadata", metadata}})));
  };
  json pairs = json::object();
  for (int i = 0; i < 16; ++i) pairs["key" + std::to_string(i)] = "value";
  CHECK(told(pairs).empty());
  pairs["one too many"] = "value";
  CHECK(told(pairs) == "invalid_value response.metadata");
  CHECK(told({{std::string(65, 'k'), "v"}}) == "invalid_value response.metadata");
  CHECK(told({{"k", std::string(513, 'v')}}) == "invalid_value response.metadata");
  CHECK(told({{"k", 1}}) == "invalid_value response.metadata");
  CHECK(told(json::array()) == "invalid_value response.metadata");
  std::string wide;
  for (int i = 0; i < 512; ++i) wide += "ö";
  CHECK(told({{"k", wide}}).empty());
}

TEST_CASE("what a client may have repeated to it is short") {
  realtime_driver server;
  const std::string name(300, 'n'), id(100'000, 'i');
  CHECK(refusal_of(server.update({{"audio", {{"output", {{"voice", name}}}}}})) ==
        "invalid_value session.audio.output.voice");
  CHECK(refusal_of(server.update({{"audio", {{"output", {{"voice", {{"id", name}}}}}}}})) ==
        "invalid_value session.audio.output.voice.id");
  CHECK(refusal_of(server.update({{"model", name}})) == "invalid_value session.model");
  for (const auto* type : {"conversation.item.retrieve", "conversation.item.delete"}) {
    const auto told = last(server.send({{"type", type}, {"item_id", id}, {"event_id", id}}), "error");
    CHECK(told.dump().size() < 1000);
    CHECK(told["error"]["event_id"].is_null());
  }
  CHECK(last(server.send({{"type", "conversation.item.create"}, {"item", {{"type", id}}}}), "error").dump().size() <
        1000);
  CHECK(last(server.send(
                 {{"type", "conversation.item.create"}, {"previous_item_id", id}, {"item", user_says("x")["item"]}}),
             "error")
            .dump()
            .size() < 1000);
}

TEST_CASE("truncation is echoed as it was asked for, and nonsense refused") {
  realtime_driver server;
  for (const json& wish : {json("disabled"), json("auto"), json{{"type", "retention_ratio"}, {"retention_ratio", 0.8}}})
    CHECK(last(server.update({{"truncation", wish}}), "session.updated")["session"]["truncation"] == wish);
  CHECK(refusal_of(server.update({{"truncation", 7}})) == "invalid_value session.truncation");
  CHECK(refusal_of(server.update({{"truncation", "never"}})) == "invalid_value session.truncation");
}

TEST_CASE("large requests wait in small numbers") {
  realtime_driver server;
  server.update({{"audio", {{"input", {{"turn_detection", nullptr}}}}}});
  server.send(respond());
  const json picture = {{"type", "input_image"},
                        {"image_url", "data:image/png;base64,iVBORw0KGgoA" + std::string(4'900'000, 'A')}};
  json items = json::array();
  for (int i = 0; i < 5; ++i) items.push_back({{"type", "message"}, {"role", "user"}, {"content", {picture}}});
  const auto large = respond({{"conversation", "none"}, {"input", items}});
  CHECK(refusal_of(server.send(large)).empty());
  CHECK(refusal_of(server.send(large)).empty());
  CHECK(refusal_of(server.send(large)) == "rate_limit_exceeded");
}

TEST_CASE("what is too much is refused, not cut") {
  realtime_driver server;
  json parts = json::array(), items = json::array();
  for (int i = 0; i < 65; ++i) parts.push_back({{"type", "input_text"}, {"text", "x"}});
  for (int i = 0; i < 257; ++i) items.push_back(user_says("x")["item"]);
  CHECK(refusal_of(server.send({{"type", "conversation.item.create"},
                                {"item", {{"type", "message"}, {"role", "user"}, {"content", parts}}}})) ==
        "invalid_value item.content");
  CHECK(refusal_of(server.send(respond({{"conversation", "none"}, {"input", items}}))) ==
        "invalid_value response.input");
}

TEST_CASE("references to items make a context of their own") {
  realtime_driver server;
  server.update({{"audio", {{"input", {{"turn_detection", nullptr}}}}}});
  const auto first = server.send(user_says("the first")).at(0)["item"]["id"];
  server.send(user_says("the second"));
  server.send(respond({{"conversation", "none"},
                       {"input", {{{"type", "item_reference"}, {"id", first}}, user_says("the third")["item"]}}}));
  server.grant();
  const auto turn = server.asked().back().dump();
  CHECK(turn.find("the first") != turn.npos);
  CHECK(turn.find("the second") == turn.npos);
  CHECK(turn.find("the third") != turn.npos);
  const auto wrong = server.send(respond({{"input", {{{"type", "item_reference"}, {"id", "item_none"}}}}}));
  CHECK(refusal_of(wrong) == "invalid_value response.input");
}

TEST_CASE("a context is measured before it is encoded") {
  realtime_driver server;
  server.update({{"audio", {{"input", {{"turn_detection", nullptr}}}}}});
  const std::string minute(24'000 * 2 * 60 / 3 * 4, 'A'); // of PCM16 at 24 kHz
  const auto heard = server.send(
      {{"type", "conversation.item.create"},
       {"item", {{"type", "message"}, {"role", "user"}, {"content", {{{"type", "input_audio"}, {"audio", minute}}}}}}});
  const auto id = heard.at(0)["item"]["id"];
  const auto respond_to = [&](int times) {
    json input = json::array();
    for (int i = 0; i < times; ++i) input.push_back({{"type", "item_reference"}, {"id", id}});
    return server.send(respond({{"conversation", "none"}, {"input", input}}));
  };
  CHECK(refusal_of(respond_to(200)) == "invalid_value response.input");
  CHECK(last(respond_to(2), "error").is_null());
}

TEST_CASE("the text of a context is measured as it is written") {
  realtime_driver server;
  server.update({{"audio", {{"input", {{"turn_detection", nullptr}}}}}});
  const auto id = server.send(user_says(std::string(400'000, '\1'))).at(0)["item"]["id"];
  json input = json::array();
  for (int i = 0; i < 200; ++i) input.push_back({{"type", "item_reference"}, {"id", id}});
  CHECK(refusal_of(server.send(respond({{"conversation", "none"}, {"input", input}}))) ==
        "invalid_value response.input");
}

TEST_CASE("a context that chat would not take is refused before it is made, however few bytes ask for it") {
  realtime_driver server;
  server.update({{"audio", {{"input", {{"format", {{"type", "audio/pcmu"}}}, {"turn_detection", nullptr}}}}}});
  const auto kept = [&](const json& part) {
    return server
        .send({{"type", "conversation.item.create"},
               {"item", {{"type", "message"}, {"role", "user"}, {"content", {part}}}}})
        .at(0)["item"]["id"];
  };
  const auto told = [&](const json& id, int times) {
    json input = json::array();
    for (int i = 0; i < times; ++i) input.push_back({{"type", "item_reference"}, {"id", id}});
    const auto events = server.send(respond({{"conversation", "none"}, {"input", input}}));
    const auto made = last(events, "response.created");
    if (made.is_object()) server.send({{"type", "response.cancel"}, {"response_id", made["response"]["id"]}});
    return refusal_of(events);
  };
  const auto picture = kept(
      {{"type", "input_image"}, {"image_url", "data:image/png;base64,iVBORw0KGgoA" + std::string(5'300'000, 'A')}});
  CHECK(told(picture, 6).empty());
  CHECK(told(picture, 7) == "invalid_value response.input");
  const auto sound = kept({{"type", "input_audio"}, {"audio", std::string(200 * 8000 / 3 * 4, '/')}});
  CHECK(told(sound, 4).empty());
  CHECK(told(sound, 5) == "invalid_value response.input");
  const auto text = kept({{"type", "input_text"}, {"text", std::string(250'000, '\n')}}); // twice as long in JSON
  CHECK(told(text, 2).empty());
  CHECK(told(text, 3) == "invalid_value response.input");
}

TEST_CASE("slashes in base64 may be escaped") {
  realtime_driver server;
  const std::string frame = R"({"type":"input_audio_buffer.append","audio":"AB\/CAB\/C"})";
  CHECK(last(server.send_text(frame), "error").is_null());
  CHECK(refusal_of(server.send_text(R"({"type":"input_audio_buffer.append","audio":"AB\\C"})")) ==
        "invalid_value audio");
  CHECK(last(server.send_text(R"({"type":"conversation.item.create","item":{"type":"message","role":"user",
      "content":[{"type":"input_audio","audio":"AB\/CAB\/C"}]}})"),
             "error")
            .is_null());
}

TEST_CASE("in Live as well what a client may have repeated to it is short") {
  live_driver server;
  const std::string long_text(100'000, 'x');
  const auto told = [&](const json& event) { return last(server.send(event), "error").dump().size(); };
  CHECK(told({{"type", "session.start"}, {"event_id", long_text}, {"session", {{"model", long_text}}}}) < 1000);
  server.begin();
  CHECK(told({{"type", long_text}, {"event_id", long_text}}) < 1000);
}
