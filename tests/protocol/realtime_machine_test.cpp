#include "tests/protocol/realtime_driver.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace parley::tests;
using nlohmann::json;
using parley::protocol::mode;
using std::chrono::milliseconds;
using names = std::vector<std::string>;

namespace {

json message(const std::string& text, const std::string& role = "user") {
  const auto* kind = role == "assistant" ? "output_text" : "input_text";
  return {{"type", "message"}, {"role", role}, {"content", {{{"type", kind}, {"text", text}}}}};
}

json create(json item, const json& previous = nullptr) {
  return {{"type", "conversation.item.create"}, {"item", std::move(item)}, {"previous_item_id", previous}};
}

const json manual = {{"audio", {{"input", {{"turn_detection", nullptr}}}}}};
const json server_vad = {{"audio", {{"input", {{"turn_detection", {{"type", "server_vad"}}}}}}}};

std::string refusal_code(const std::vector<json>& events) {
  const auto error = last(events, "error");
  return error.is_null() ? "" : error["error"]["code"].get<std::string>();
}

} // namespace

TEST_CASE("the server speaks first, and echoes the whole session") {
  realtime_driver server;
  REQUIRE(types(server.events()) == names{"session.created"});
  const auto made = server.events()[0]["session"];
  CHECK(made["audio"]["input"]["turn_detection"]["type"] == "semantic_vad");
  CHECK(made["audio"]["output"]["format"] == json{{"type", "audio/pcm"}, {"rate", 24'000}});
  CHECK(made["expires_at"] == 1'700'000'600);

  const auto changed = server.update(
      {{"instructions", "Be \"brief\"."},
       {"tracing", "auto"},
       {"max_output_tokens", 77},
       {"tools", {{{"type", "function"}, {"name", "f"}}}},
       {"audio",
        {{"input",
          {{"format", {{"type", "audio/pcmu"}}}, {"transcription", {{"model", "x"}}}, {"turn_detection", nullptr}}},
         {"output", {{"voice", {{"id", "mine"}}}, {"speed", 1.25}}}}}});
  const auto now = last(changed, "session.updated")["session"];
  CHECK(now["instructions"] == "Be \"brief\".");
  CHECK(now["tracing"] == "auto");
  CHECK(now["max_output_tokens"] == 77);
  CHECK(now["tools"][0]["name"] == "f");
  CHECK(now["audio"]["input"]["format"] == json{{"type", "audio/pcmu"}});
  CHECK(now["audio"]["input"]["transcription"].is_null());
  CHECK(now["audio"]["input"]["turn_detection"].is_null());
  CHECK(now["audio"]["output"]["voice"] == "mine");
  CHECK(now["audio"]["output"]["speed"] == 1.25);
}

TEST_CASE("a wrong update changes nothing") {
  realtime_driver server;
  CHECK(refusal_code(server.update({{"instructions", "x"}, {"output_modalities", {"smell"}}})) == "invalid_value");
  CHECK(refusal_code(server.update({{"tools", {{{"type", "mcp"}}}}})) == "invalid_value");
  CHECK(refusal_code(server.update({{"audio", {{"input", {{"format", {{"type", "audio/pcm"}, {"rate", 8000}}}}}}}})) ==
        "invalid_value");
  CHECK(refusal_code(server.update({{"instructions", std::string(40'000, 'x')}})) == "invalid_value");
  CHECK(refusal_code(server.send({{"type", "session.update"}, {"session", {{"type", "transcription"}}}})) ==
        "unsupported_session_type");
  CHECK(last(server.update(json::object()), "session.updated")["session"]["instructions"] == "");
  CHECK_FALSE(server.ended());
}

TEST_CASE("a typed question is a chat turn, told in the order of the table") {
  realtime_driver server;
  server.update(manual);
  const auto added = server.send(create(message("What is your name?")));
  REQUIRE(types(added) == names{"conversation.item.added", "conversation.item.done"});
  const auto created = server.send({{"type", "response.create"}, {"response", {{"metadata", {{"mark", "7"}}}}}});
  REQUIRE(types(created) == names{"response.created"});
  CHECK(created[0]["response"]["metadata"] == json{{"mark", "7"}});
  REQUIRE(server.open() == mode::chat);
  CHECK(server.asked()[0]["type"] == "session.init");
  server.grant();
  const auto asked = server.asked();
  REQUIRE(asked.size() == 1);
  server.grant();
  CHECK(server.asked().empty());
  CHECK(asked[0]["input"]["messages"][0]["content"][0]["text"] == "What is your name?");
  CHECK(asked[0]["input"]["tts"]["enabled"] == true);

  auto said = server.chat_delta("My name ");
  CHECK(types(said) == names{"response.output_item.added", "conversation.item.added", "response.content_part.added",
                             "response.output_audio_transcript.delta"});
  server.chat_delta("is Parley.");
  CHECK(types(server.chat_delta("", 1.5)) == names{"response.output_audio.delta", "response.output_audio.delta"});
  said = server.chat_done();
  CHECK(types(said) == names{"response.output_audio.done", "response.output_audio_transcript.done",
                             "response.content_part.done", "conversation.item.done", "response.output_item.done",
                             "response.done", "rate_limits.updated"});
  const auto done = last(said, "response.done")["response"];
  CHECK(done["status"] == "completed");
  CHECK(done["metadata"] == json{{"mark", "7"}});
  CHECK(done["usage"]["total_tokens"] == 45);
  CHECK(done["output"][0]["content"][0]["transcript"] == "My name is Parley.");
  CHECK_FALSE(server.open());
  server.seen().check_quiet();
}

TEST_CASE("a text answer has text events and no sound") {
  realtime_driver server;
  server.update({{"output_modalities", {"text"}}, {"audio", manual["audio"]}});
  server.send(create(message("Hello")));
  server.send({{"type", "response.create"}});
  server.grant();
  server.chat_delta("Hi");
  server.chat_delta("", 0.5);
  const auto done = last(server.chat_done("length"), "response.done")["response"];
  CHECK(done["status"] == "incomplete");
  CHECK(done["status_details"] == json{{"type", "incomplete"}, {"reason", "max_output_tokens"}});
  CHECK(done["output"][0]["content"][0] == json{{"type", "output_text"}, {"text", "Hi"}});
  CHECK(last(server.events(), "response.output_audio.delta").is_null());
  server.seen().check_quiet();
}

TEST_CASE("items are inserted, shown, deleted, and refused by name") {
  realtime_driver server;
  const auto put = [&](const char* id, const json& previous, const char* role = "user") {
    auto one = message(id, role);
    one["id"] = id;
    return server.send(create(one, previous));
  };
  CHECK(put("a", nullptr)[0]["previous_item_id"].is_null());
  CHECK(put("b", nullptr, "assistant")[0]["previous_item_id"] == "a");
  CHECK(put("c", "root", "system")[0]["previous_item_id"].is_null());
  CHECK(put("d", "a")[0]["previous_item_id"] == "a");
  CHECK(refusal_code(put("d", nullptr)) == "item_create_duplicate_item_id");
  CHECK(refusal_code(put("e", "nowhere")) == "item_create_invalid_previous_item_id");
  const auto got = server.send({{"type", "conversation.item.retrieve"}, {"item_id", "b"}});
  CHECK(got[0]["item"]["content"][0]["text"] == "b");
  CHECK(server.send({{"type", "conversation.item.delete"}, {"item_id", "d"}})[0]["item_id"] == "d");
  CHECK(refusal_code(server.send({{"type", "conversation.item.retrieve"}, {"item_id", "d"}})) ==
        "item_retrieve_invalid_item_id");

  server.update(manual);
  server.send({{"type", "response.create"}});
  server.grant();
  const auto messages = last(server.asked(), "input.append")["input"]["messages"];
  names roles;
  for (const auto& each : messages) roles.push_back(each["role"]);
  CHECK(roles == names{"system", "user", "assistant", "user"}); // chat ends with what a user says
}

TEST_CASE("errors name the client's event and end nothing") {
  realtime_driver server;
  server.update(manual);
  const auto refused = [&](json event) {
    event["event_id"] = "mine";
    const auto error = last(server.send(event), "error");
    REQUIRE(error.is_object());
    CHECK(error["error"]["event_id"] == "mine");
    CHECK(error["error"]["type"] == "invalid_request_error");
    return error["error"];
  };
  CHECK(refused({{"type", "response.cancel"}})["message"].get<std::string>().starts_with("Cancellation failed"));
  CHECK(refused({{"type", "input_audio_buffer.commit"}})["code"] == "input_audio_buffer_commit_empty");
  CHECK(refused({{"type", "conversation.item.delete"}, {"item_id", "no"}})["code"] == "item_delete_invalid_item_id");
  CHECK(refused({{"type", "conversation.item.truncate"},
                 {"item_id", "no"},
                 {"content_index", 0},
                 {"audio_end_ms", 1}})["code"] == "item_truncate_invalid_item_id");
  CHECK(refused({{"type", "conversation.item.truncate"}, {"item_id", "no"}, {"audio_end_ms", 1}})["param"] ==
        "content_index");
  CHECK(refused({{"type", "no.such.event"}})["param"] == "type");
  CHECK(refused({{"type", "input_audio_buffer.append"}, {"audio", "AAAA"}})["code"] == "invalid_value"); // odd
  CHECK(refused({{"type", "input_audio_buffer.append"}, {"audio", "?"}})["param"] == "audio");
  CHECK(refused({{"type", "input_audio_buffer.append"}})["code"] == "missing_required_parameter");
  CHECK(refusal_code(server.send_text("{")) == "invalid_json");
  CHECK(refusal_code(server.send_text("[]")) == "invalid_json");
  server.send({{"type", "response.create"}});
  CHECK(refused({{"type", "response.create"}})["code"] == "conversation_already_has_active_response");
  CHECK(types(server.send({{"type", "output_audio_buffer.clear"}})).empty());
  CHECK_FALSE(server.ended());
  for (int i = 0; i < 60 && !server.ended(); ++i) server.send_text("{");
  REQUIRE(server.ended());
  CHECK(server.ended()->code == 1008);
}

TEST_CASE("a cancelled response is told whole, and a late cancel is no mistake") {
  realtime_driver server;
  server.update(manual);
  server.send({{"type", "response.create"}});
  server.grant();
  server.chat_delta("Once upon");
  const auto cut = server.send({{"type", "response.cancel"}});
  const auto done = last(cut, "response.done")["response"];
  CHECK(done["status"] == "cancelled");
  CHECK(done["status_details"]["reason"] == "client_cancelled");
  CHECK(done["output"][0]["status"] == "incomplete");
  CHECK_FALSE(server.open());
  CHECK(last(server.asked(), "session.close").is_object());
  CHECK(types(server.send({{"type", "response.cancel"}})).empty());
  server.wait(milliseconds(1500));
  CHECK(refusal_code(server.send({{"type", "response.cancel"}})) == "response_cancel_not_active");
  server.seen().check_quiet();
}

TEST_CASE("a client is told after each answer how many tokens its key may use") {
  parley::protocol::openai::realtime::machine_terms terms;
  terms.tokens_left = [] { return parley::protocol::openai::realtime::token_limit{1000, 250, 3600}; };
  realtime_driver server(true, 1, terms);
  server.update(manual);
  server.send(create(message("Hello")));
  server.send({{"type", "response.create"}});
  server.grant();
  server.chat_delta("Hi.");
  const auto limits = last(server.chat_done(), "rate_limits.updated")["rate_limits"];
  CHECK(limits == json::parse(R"([{"name": "tokens", "limit": 1000, "remaining": 250, "reset_seconds": 3600}])"));
}

TEST_CASE("a connection ends when its key has used up its quota") {
  const parley::protocol::error_event spent{parley::protocol::error_code::quota_exceeded,
                                            "the 2 minutes of this day are used up"};
  realtime_driver answers, waits;
  for (auto* server : {&answers, &waits}) {
    server->update(manual);
    server->send({{"type", "response.create"}});
    if (server == &answers) {
      server->grant();
      server->chat_delta("Well");
    }
    const auto told = server->inner(spent);
    const auto failed = last(told, "response.done")["response"];
    CHECK(failed["status"] == "failed");
    CHECK(failed["status_details"]["error"]["code"] == "insufficient_quota");
    const auto error = last(told, "error")["error"];
    CHECK(error["type"] == "insufficient_quota");
    CHECK(error["code"] == "insufficient_quota");
    CHECK(error["message"] == spent.message);
    REQUIRE(server->ended());
    CHECK(server->ended()->code == 1008);
    CHECK(server->ended()->reason == "insufficient_quota");
  }
}

TEST_CASE("a response that gets no slot fails, and the session goes on") {
  realtime_driver server;
  server.update(manual);
  server.send({{"type", "response.create"}});
  const auto failed = last(server.wait(milliseconds(8001)), "response.done")["response"];
  CHECK(failed["status"] == "failed");
  CHECK(failed["status_details"]["error"]["code"] == "server_busy");
  CHECK(failed["output"].empty());
  CHECK_FALSE(server.open());

  server.send({{"type", "response.create"}});
  const auto lost = last(server.inner_closes(), "response.done")["response"];
  CHECK(lost["status_details"]["error"]["code"] == "server_error");
  server.send({{"type", "response.create"}});
  server.grant();
  CHECK(last(server.chat_done(), "response.done")["response"]["status"] == "completed");
  server.seen().check_quiet();
}

TEST_CASE("a response out of band leaves no item, and waits for the one before it") {
  realtime_driver server;
  server.update(manual);
  server.send({{"type", "response.create"}});
  const json band = {{"conversation", "none"},
                     {"output_modalities", {"text"}},
                     {"metadata", {{"topic", "x"}}},
                     {"instructions", "Classify."},
                     {"input", {message("Hello")}}};
  const auto created = last(server.send({{"type", "response.create"}, {"response", band}}), "response.created");
  CHECK(created["response"]["conversation_id"].is_null());
  server.grant();
  server.chat_delta("One");
  server.chat_done();
  REQUIRE(server.open() == mode::chat);
  server.asked();
  server.grant();
  const auto asked = server.asked().back()["input"];
  CHECK(asked["messages"][0]["content"][0]["text"] == "Classify.");
  CHECK(asked["messages"][1]["content"][0]["text"] == "Hello");
  CHECK_FALSE(asked.contains("tts"));
  server.chat_delta("Two");
  const auto done = last(server.chat_done(), "response.done")["response"];
  CHECK(done["metadata"] == json{{"topic", "x"}});
  server.seen().check_quiet();
  CHECK(refusal_code(server.send({{"type", "response.create"},
                                  {"response", {{"input", {{{"type", "item_reference"}, {"id", "nowhere"}}}}}}})) ==
        "invalid_value");
}

TEST_CASE("push to talk: sound is committed by the client") {
  realtime_driver server;
  server.update(manual);
  CHECK(types(server.hear(tone(1))).empty());
  CHECK(types(server.send({{"type", "input_audio_buffer.commit"}})) ==
        names{"input_audio_buffer.committed", "conversation.item.added", "conversation.item.done"});
  server.send({{"type", "response.create"}});
  server.grant();
  const auto content = server.asked().back()["input"]["messages"][0]["content"][0];
  CHECK(content["type"] == "audio");
  CHECK(content["data"].get<std::string>().size() > 16'000 * 4 * 4 / 3 * 0.95);
  server.chat_done();
  server.hear(tone(1));
  CHECK(types(server.send({{"type", "input_audio_buffer.clear"}})) == names{"input_audio_buffer.cleared"});
  CHECK(refusal_code(server.send({{"type", "input_audio_buffer.commit"}})) == "input_audio_buffer_commit_empty");
}

TEST_CASE("the server finds the user's turn and answers it") {
  realtime_driver server;
  server.update(server_vad);
  server.hear(quiet(1));
  const auto heard = server.hear(tone(1));
  REQUIRE(types(heard) == names{"input_audio_buffer.speech_started"});
  const auto item = heard[0]["item_id"];
  CHECK(heard[0]["audio_start_ms"].get<int>() == Approx(700).margin(40));
  const auto ended = server.hear(quiet(1));
  CHECK(types(ended) == names{"input_audio_buffer.speech_stopped", "input_audio_buffer.committed",
                              "conversation.item.added", "conversation.item.done", "response.created"});
  CHECK(ended[0]["audio_end_ms"].get<int>() == Approx(2500).margin(60));
  CHECK(ended[2]["item"]["id"] == item);
  CHECK(ended[4]["response"]["metadata"].is_null());
  server.grant();
  const auto data = server.asked().back()["input"]["messages"][0]["content"][0]["data"].get<std::string>();
  CHECK(static_cast<double>(data.size()) * 3 / 4 / 4 / 16'000 == Approx(1.9).margin(0.2)); // its padding and the quiet
}

TEST_CASE("speech interrupts an answer, which a short sound does not") {
  realtime_driver server;
  server.update(server_vad);
  server.hear(tone(1));
  server.hear(quiet(1));
  server.grant();
  const auto first = last(server.chat_delta("A long story"), "response.output_audio_transcript.delta");
  server.chat_delta("", 1);
  server.hear(tone(0.09));
  server.hear(quiet(0.5));
  CHECK(last(server.events(), "response.done").is_null());
  const auto cut = server.hear(tone(0.5));
  CHECK(types(cut) == names{"input_audio_buffer.speech_started", "response.output_audio.done",
                            "response.output_audio_transcript.done", "response.content_part.done",
                            "conversation.item.done", "response.output_item.done", "response.done",
                            "rate_limits.updated"});
  CHECK(last(cut, "response.done")["response"]["status_details"]["reason"] == "turn_detected");

  const auto item = first["item_id"];
  const json truncate = {
      {"type", "conversation.item.truncate"}, {"item_id", item}, {"content_index", 0}, {"audio_end_ms", 500}};
  CHECK(types(server.send(truncate)) == names{"conversation.item.truncated"});
  const auto kept = server.send({{"type", "conversation.item.retrieve"}, {"item_id", item}});
  CHECK(kept[0]["item"]["content"][0]["transcript"] == "A long");
  server.hear(quiet(1));
  CHECK(server.open() == mode::chat);
}

TEST_CASE("a turn during an answer that may not be interrupted is answered afterwards") {
  realtime_driver server;
  server.update(
      {{"audio", {{"input", {{"turn_detection", {{"type", "server_vad"}, {"interrupt_response", false}}}}}}}});
  server.hear(tone(1));
  server.hear(quiet(1));
  server.grant();
  server.chat_delta("A long story");
  const auto meanwhile = server.hear(tone(1));
  CHECK(types(meanwhile) == names{"input_audio_buffer.speech_started"});
  server.hear(quiet(1));
  CHECK(types(server.chat_done()).back() == "response.created");
  CHECK(server.open() == mode::chat);
}

TEST_CASE("an answer that speech may interrupt is sent little ahead of its time") {
  realtime_driver server;
  server.update(server_vad);
  server.send({{"type", "response.create"}});
  server.grant();
  server.chat_delta("One two three");
  for (int i = 0; i < 3; ++i) server.chat_delta("", 1);
  server.chat_done();
  const auto& seen = server.events();
  const auto sent = [&] {
    return std::count_if(seen.begin(), seen.end(),
                         [](const json& each) { return each["type"] == "response.output_audio.delta"; });
  };
  CHECK_FALSE(server.open()); // chat is done with it
  CHECK(sent() == 2);
  CHECK(types(server.wait(milliseconds(999))).empty());
  CHECK(types(server.wait(milliseconds(2))) == names{"response.output_audio.delta"});
  CHECK(last(server.wait(milliseconds(998)), "response.done").is_null());
  CHECK(last(server.wait(milliseconds(2)), "response.done")["response"]["status"] == "completed");
}

TEST_CASE("an answer that is sent at the pace of a player ends when the client cuts it") {
  realtime_driver server;
  server.update(server_vad);
  server.send({{"type", "response.create"}});
  server.grant();
  const auto item = last(server.chat_delta("one two three four"), "response.output_item.added")["item"]["id"];
  for (int i = 0; i < 4; ++i) server.chat_delta("", 1);
  json cut{{"type", "conversation.item.truncate"}, {"item_id", item}, {"content_index", 0}, {"audio_end_ms", 1000}};
  SECTION("while it is made") {}
  SECTION("while the rest waits to be sent") {
    server.chat_done();
  }
  SECTION("where nothing of it was sent that was not heard") {
    cut["audio_end_ms"] = 60'000;
  }
  const auto told = server.send(cut);
  CHECK(types(told) == names{"response.output_audio.done", "response.output_audio_transcript.done",
                             "response.content_part.done", "conversation.item.done", "response.output_item.done",
                             "response.done", "rate_limits.updated", "conversation.item.truncated"});
  const auto response = last(told, "response.done")["response"];
  CHECK(response["status"] == "cancelled");
  CHECK(response["status_details"]["reason"] == "client_cancelled");
  CHECK_FALSE(server.open());
  CHECK(types(server.wait(milliseconds(5000))).empty());
  server.seen().check_quiet();
}

TEST_CASE("a client that sends nothing more is silent") {
  realtime_driver server;
  server.update(server_vad);
  server.hear(tone(1));
  CHECK(types(server.wait(milliseconds(1200))) == names{"input_audio_buffer.speech_stopped",
                                                        "input_audio_buffer.committed", "conversation.item.added",
                                                        "conversation.item.done", "response.created"});
}

TEST_CASE("other kinds of sessions are refused over the connection") {
  realtime_driver server(false);
  CHECK(refusal_code(server.events()) == "unsupported_session_type");
  REQUIRE(server.ended());
  CHECK(server.ended()->code == 1008);
  CHECK(types(server.send({{"type", "response.create"}})).empty());
}

TEST_CASE("a session has an end, of which the client is told") {
  realtime_driver server;
  CHECK(refusal_code(server.wait(std::chrono::seconds(601))) == "session_expired");
  REQUIRE(server.ended());
  CHECK(server.ended()->code == 1001);
}
