#include "tests/protocol/realtime_driver.hpp"

#include <catch2/catch.hpp>

#include <set>

// Members as other dialects write them, and what the server shows of a session.
using namespace parley::tests;
using nlohmann::json;
using event_names = std::vector<std::string>;

namespace {

const json manual = {{"audio", {{"input", {{"turn_detection", nullptr}}}}}};
const json asks = {
    {"type", "conversation.item.create"},
    {"item", {{"type", "message"}, {"role", "user"}, {"content", {{{"type", "input_text"}, {"text", "Hi"}}}}}}};

/// The session after an update, or the error's code and field.
json after(const json& session) {
  realtime_driver server;
  const auto told = server.update(session).back();
  if (told["type"] == "error")
    return told["error"]["code"].get<std::string>() + " " + told["error"]["param"].get<std::string>();
  return told["session"];
}

/// What chat is asked for by this response, or the error's code and field.
json asked_by(const json& response) {
  realtime_driver server;
  server.update(manual);
  server.send(asks);
  const auto told = server.send({{"type", "response.create"}, {"response", response}}).back();
  if (told["type"] == "error")
    return told["error"]["code"].get<std::string>() + " " + told["error"]["param"].get<std::string>();
  server.grant();
  auto asked = last(server.asked(), "input.append")["input"];
  asked["shown"] = told["response"];
  return asked;
}

} // namespace

TEST_CASE("a response has the modalities and lengths that it names in any spelling") {
  CHECK(asked_by(json::object()).contains("tts"));
  CHECK_FALSE(asked_by({{"output_modalities", {"text"}}}).contains("tts"));
  CHECK_FALSE(asked_by({{"modalities", {"text"}}}).contains("tts"));
  CHECK(asked_by({{"modalities", {"text", "audio"}}}).contains("tts"));
  CHECK_FALSE(
      asked_by({{"output_modalities", {"text"}}, {"modalities", {"audio"}}}).contains("tts")); // its own name wins
  CHECK(asked_by({{"modalities", "text"}}) == "invalid_value response.modalities");
  for (const auto* name : {"max_output_tokens", "max_response_output_tokens"})
    CHECK(asked_by({{name, 9}})["generation"]["max_new_tokens"] == 9);
  for (const json& spelled :
       {json{{"voice", "max"}}, json{{"audio", {{"voice", "max"}}}}, json{{"audio", {{"output", {{"voice", "max"}}}}}}})
    CHECK(asked_by(spelled)["shown"]["audio"]["output"]["voice"] == "max");
  CHECK(asked_by({{"output_audio_format", "g711_ulaw"}})["shown"]["audio"]["output"]["format"]["type"] == "audio/pcmu");
}

TEST_CASE("a session takes the beta's flat members, whatever the connection speaks") {
  const auto flat = after({{"type", "realtime"},
                           {"modalities", {"text"}},
                           {"voice", "max"},
                           {"input_audio_format", "g711_alaw"},
                           {"output_audio_format", "pcm16"},
                           {"turn_detection", {{"type", "server_vad"}, {"silence_duration_ms", 300}}},
                           {"input_audio_noise_reduction", {{"type", "near_field"}}},
                           {"temperature", 0.8},
                           {"max_response_output_tokens", 5},
                           {"speed", 1.25}});
  REQUIRE(flat.is_object());
  CHECK(flat["output_modalities"] == json{"text"});
  CHECK(flat["max_output_tokens"] == 5);
  CHECK(flat["audio"]["input"]["format"]["type"] == "audio/pcma");
  CHECK(flat["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 300);
  CHECK(flat["audio"]["output"]["voice"] == "max");
  CHECK(flat["audio"]["output"]["speed"] == 1.25);

  CHECK(after({{"turn_detection", {{"type", "server_vad"}}},
               {"audio", {{"input", {{"turn_detection", nullptr}}}}}})["audio"]["input"]["turn_detection"]
            .is_null());
  CHECK(after({{"audio", {{"input", {{"format", "pcm16"}}}}}})["audio"]["input"]["format"]["type"] == "audio/pcm");
  CHECK(after({{"input_audio_sampling_rate", 16'000}})["audio"]["input"]["format"]["rate"] == 16'000);
  CHECK(after({{"input_audio_sampling_rate", 8'000}}) == "invalid_value session.input_audio_sampling_rate");
}

TEST_CASE("turn detection is off in every way to say so") {
  for (const json& off : {json(nullptr), json("none"), json{{"type", "none"}}}) {
    CHECK(after({{"turn_detection", off}})["audio"]["input"]["turn_detection"].is_null());
    CHECK(after({{"audio", {{"input", {{"turn_detection", off}}}}}})["audio"]["input"]["turn_detection"].is_null());
  }
  CHECK(after({{"turn_detection", "server_vad"}})["audio"]["input"]["turn_detection"]["type"] == "server_vad");
  CHECK(after({{"turn_detection", {{"type", "azure_semantic_vad"}}}}) == "invalid_value session.turn_detection.type");
}

TEST_CASE("a member that nobody knows is refused by name, and changes nothing") {
  CHECK(after({{"instructions", "x"}, {"output_modality", {"text"}}}) == "unknown_parameter session.output_modality");
  CHECK(after({{"audio", {{"input", {{"vad", 1}}}}}}) == "unknown_parameter session.audio.input.vad");
  CHECK(after({{"audio", {{"output", {{"rate", 1}}}}}}) == "unknown_parameter session.audio.output.rate");
  CHECK(after({{"audio", {{"inputs", json::object()}}}}) == "unknown_parameter session.audio.inputs");
  CHECK(after({{"turn_detection", {{"type", "server_vad"}, {"silence_ms", 9}}}}) ==
        "unknown_parameter session.turn_detection.silence_ms");
  CHECK(after({{"audio", {{"input", {{"format", {{"type", "audio/pcm"}, {"channels", 2}}}}}}}}) ==
        "unknown_parameter session.audio.input.format.channels");
  CHECK(after({{"unheard_of", nullptr}}).is_object()); // nothing was wished
  CHECK(asked_by({{"max_tokens", 9}}) == "unknown_parameter response.max_tokens");
  CHECK(asked_by({{"audio", {{"output", {{"vocie", "max"}}}}}}) == "unknown_parameter response.audio.output.vocie");
  json many = json::object();
  for (int i = 0; i < 200; ++i) many["m" + std::to_string(i)] = nullptr;
  CHECK(after(many) == "invalid_value session");
}

namespace {

// As OpenAI's specification lists them.
const std::set<std::string> voices{"alloy", "ash",     "ballad", "coral", "echo",
                                   "sage",  "shimmer", "verse",  "marin", "cedar"};

void check_session(const json& of) {
  INFO(of.dump());
  const auto one_of = [](const json& value, std::set<std::string> names) {
    INFO(value.dump());
    CHECK((value.is_string() && names.contains(value.get<std::string>())));
  };
  CHECK(of["type"] == "realtime");
  CHECK(of["object"] == "realtime.session");
  for (const auto& each : of["output_modalities"]) one_of(each, {"text", "audio"});
  CHECK((of["max_output_tokens"] == "inf" || of["max_output_tokens"].is_number_integer()));
  if (of["tracing"].is_string()) CHECK(of["tracing"] == "auto");
  if (of["tool_choice"].is_object()) {
    CHECK(of["tool_choice"]["type"] == "function");
    CHECK(of["tool_choice"]["name"].is_string());
  } else {
    one_of(of["tool_choice"], {"auto", "none", "required"});
  }
  for (const auto& each : of["tools"]) CHECK(each["type"] == "function");
  if (of["truncation"].is_object())
    CHECK(of["truncation"]["type"] == "retention_ratio");
  else
    one_of(of["truncation"], {"auto", "disabled"});
  for (const auto* side : {"input", "output"})
    one_of(of["audio"][side]["format"]["type"], {"audio/pcm", "audio/pcmu", "audio/pcma"});
  const auto& input = of["audio"]["input"];
  if (!input["noise_reduction"].is_null()) one_of(input["noise_reduction"]["type"], {"near_field", "far_field"});
  if (const auto& turns = input["turn_detection"]; !turns.is_null()) {
    one_of(turns["type"], {"server_vad", "semantic_vad"});
    if (turns["type"] == "semantic_vad") one_of(turns["eagerness"], {"low", "medium", "high", "auto"});
  }
  one_of(of["audio"]["output"]["voice"], voices);
}

} // namespace

TEST_CASE("a session is shown in words of OpenAI's lists, whatever the client has written") {
  realtime_driver fresh;
  check_session(fresh.events()[0]["session"]);
  check_session(after(json::object()));
  for (const auto* voice : {"cedar", "verse"}) check_session(after({{"voice", voice}}));
  const json tool{{"type", "function"}, {"function", {{"name", "f"}}}};
  for (const json& choice : {json("f"), json("none"), json{{"type", "required"}}, json{{"function", {{"name", "f"}}}}})
    check_session(after({{"tools", {tool}}, {"tool_choice", choice}}));
  for (const auto* format : {"pcm16", "g711_ulaw", "g711_alaw"})
    check_session(after({{"input_audio_format", format}, {"output_audio_format", {{"type", format}}}}));
  for (const auto* eagerness : {"low", "medium", "high", "auto"})
    check_session(after({{"turn_detection", {{"type", "semantic_vad"}, {"eagerness", eagerness}}}}));
  check_session(after({{"input_audio_noise_reduction", {{"type", "azure_deep_noise_suppression"}}}}));
  check_session(after({{"truncation", {{"type", "retention_ratio"}, {"retention_ratio", 0.8}}}}));
  check_session(after({{"tracing", {{"workflow_name", "x"}}}}));
  CHECK(after({{"tracing", "always"}}) == "invalid_value session.tracing");
  CHECK(after({{"truncation", {{"type", "half"}}}}) == "invalid_value session.truncation.type");
  CHECK(after({{"turn_detection", {{"type", "semantic_vad"}, {"eagerness", "keen"}}}}) ==
        "invalid_value session.turn_detection.eagerness");
}

TEST_CASE("a response is shown in words of OpenAI's lists") {
  const auto shown = asked_by(json::object())["shown"];
  CHECK(shown["object"] == "realtime.response");
  CHECK(shown["status"] == "in_progress");
  CHECK(voices.contains(shown["audio"]["output"]["voice"].get<std::string>()));
  CHECK(shown["output_modalities"] == json{"audio"});
  CHECK(shown["max_output_tokens"] == "inf");
}

TEST_CASE("every item that the server shows can be sent back as it came") {
  realtime_driver server;
  auto session = manual;
  session["tools"] = {{{"type", "function"}, {"name", "f"}}};
  server.update(session);
  server.send(asks);
  server.send(
      {{"type", "conversation.item.create"},
       {"item",
        {{"type", "message"},
         {"role", "user"},
         {"content", {{{"type", "input_audio"}, {"audio", ""}}, {{"type", "input_image"}, {"detail", "auto"}}}}}}});
  server.send({{"type", "response.create"}});
  server.grant();
  server.chat_delta("One moment.", 0.5);
  server.inner(R"({"type":"response.tool_call","id":"call_1","name":"f","arguments":"{}"})");
  server.chat_done();
  server.send({{"type", "conversation.item.create"},
               {"item", {{"type", "function_call_output"}, {"call_id", "call_1"}, {"output", "done"}}}});
  server.send({{"type", "response.create"}, {"response", {{"modalities", {"text"}}}}});
  server.grant();
  server.chat_delta("There.");
  server.chat_done();

  realtime_driver again;
  again.update(session);
  std::vector<json> shown;
  for (const auto& event : server.events())
    if (event["type"] == "conversation.item.done") shown.push_back(event["item"]);
  REQUIRE(shown.size() == 6);
  for (const auto& item : shown) {
    INFO(item.dump());
    const auto told = again.send({{"type", "conversation.item.create"}, {"item", item}});
    REQUIRE(types(told) == event_names{"conversation.item.added", "conversation.item.done"});
    CHECK(told[1]["item"] == item);
  }
  again.send({{"type", "response.create"}});
  again.grant();
  CHECK(last(again.asked(), "input.append")["input"]["messages"].size() == 5); // with "Please go on."
  // A response's output and the parts of its events as history of another one.
  const auto out_of_band = again.send(
      {{"type", "response.create"},
       {"response",
        {{"conversation", "none"}, {"input", last(server.events(), "response.done")["response"]["output"]}}}});
  CHECK(types(out_of_band) == event_names{"response.created"});
}
