#include "protocol/events.hpp"
#include "tests/protocol/live_driver.hpp"
#include "tests/protocol/realtime_driver.hpp"

#include <catch2/catch.hpp>

// docs/openai.md: functions that a full-duplex conversation calls, in the Realtime and the Live API.
namespace parley::tests {
namespace {

using nlohmann::json;
using protocol::mode;
using call_names = std::vector<std::string>;

const json clock_tool{{"type", "function"}, {"name", "get_time"}, {"parameters", {{"type", "object"}}}};

protocol::duplex_call_done clock_call(const std::string& id) {
  return {{id, "get_time", R"({"zone": "UTC"})"}, 3, "x", {.input_text = 40, .input_audio = 15, .output_text = 9}};
}

protocol::openai::realtime::machine_terms calling() {
  protocol::openai::realtime::machine_terms terms;
  terms.duplex_calls = true;
  return terms;
}

json output(const std::string& call_id, const std::string& text) {
  return {{"type", "conversation.item.create"},
          {"item", {{"type", "function_call_output"}, {"call_id", call_id}, {"output", text}}}};
}

/// The frames of one type that the inner session got since the last look.
std::vector<json> got(const std::vector<json>& asked, const std::string& type) {
  std::vector<json> out;
  for (const auto& each : asked)
    if (each["type"] == type) out.push_back(each);
  return out;
}

/// A session with a function, to which somebody speaks.
void begin_calling(realtime_driver& server) {
  server.update({{"tools", {clock_tool}}});
  server.hear(tone(1));
  REQUIRE(server.open() == mode::audio);
  server.grant();
}

protocol::openai::live::machine_terms delegating() {
  protocol::openai::live::machine_terms terms;
  terms.delegates = true;
  return terms;
}

json answer_delegation(const std::string& channel, const json& id, const std::string& content) {
  return {{"type", "session." + channel + ".append"}, {"delegation_id", id}, {"content", content}};
}

json to_responses(const json& tools) {
  return {{"delegation", {{"type", "responses"}, {"responses", {{"tools", tools}}}}}};
}

json live_output(const std::string& call_id, const std::string& text) {
  return {{"type", "response.item.create"},
          {"item", {{"type", "function_call_output"}, {"call_id", call_id}, {"output", text}}}};
}

} // namespace

TEST_CASE("in full duplex a call is a response of its own, and its result goes to the running conversation") {
  realtime_driver server(true, 1, calling());
  begin_calling(server);
  CHECK(got(server.asked(), "session.init").at(0)["payload"]["tools"][0]["function"]["name"] == "get_time");
  server.hear(quiet(1));
  const auto told = server.inner(clock_call("call_1"));
  CHECK(types(told) == call_names{"response.created", "response.output_item.added", "conversation.item.added",
                                  "response.function_call_arguments.delta", "response.function_call_arguments.done",
                                  "conversation.item.done", "response.output_item.done", "response.done"});
  const auto called = last(told, "response.done")["response"]["output"][0];
  CHECK(called["call_id"] == "call_1");
  CHECK(called["arguments"] == R"({"zone": "UTC"})");
  CHECK(server.open() == mode::audio);
  server.asked();
  CHECK(types(server.send(output("call_1", "14:30"))) ==
        call_names{"conversation.item.added", "conversation.item.done"});
  const auto results = got(server.asked(), "input.tool_result");
  REQUIRE(results.size() == 1);
  CHECK(results[0]["tool_call_id"] == "call_1");
  CHECK(results[0]["content"] == "14:30");
  server.send(output("call_1", "again"));
  const auto again = server.asked();
  CHECK(got(again, "input.tool_result").empty());
  server.seen().check_quiet();
}

TEST_CASE("a call in the middle of what the model says is a part of it") {
  realtime_driver server(true, 1, calling());
  begin_calling(server);
  server.hear(quiet(1));
  server.speaks("resp_a", "One moment,", 1);
  CHECK(types(server.inner(clock_call("call_1"))) ==
        call_names{"response.output_audio.done", "response.output_audio_transcript.done", "response.content_part.done",
                   "conversation.item.done", "response.output_item.done", "response.output_item.added",
                   "conversation.item.added", "response.function_call_arguments.delta"});
  const auto rest = server.speaks("resp_a", " please.", 1, true);
  CHECK(last(rest, "response.done")["response"]["output"].size() == 3);
  server.seen().check_quiet();
}

TEST_CASE("a result that comes after its time, or to another session, is told as text") {
  realtime_driver server(true, 1, calling());
  begin_calling(server);
  server.hear(quiet(1));
  server.inner(clock_call("call_1"));
  server.inner(protocol::duplex_call_abort{"call_1", "timeout"});
  server.asked();
  server.send(output("call_1", "14:30"));
  server.hear(quiet(1));
  const auto asked = server.asked();
  CHECK(got(asked, "input.tool_result").empty());
  bool told = false;
  for (const auto& each : got(asked, "input.append")) told = told || each["input"].contains("context");
  CHECK(told);
}

TEST_CASE("functions that must be called, too many, and all where the server wants it so, are called in chat") {
  auto large = clock_tool;
  large["description"] = std::string(17'000, 'x');
  const std::tuple<bool, json, const char*> cases[] = {
      {true, clock_tool, "required"}, {true, large, "auto"}, {false, clock_tool, "auto"}};
  for (const auto& [allowed, tool, choice] : cases) {
    auto terms = calling();
    terms.duplex_calls = allowed;
    realtime_driver server(true, 1, terms);
    server.update({{"tools", {tool}}, {"tool_choice", choice}});
    server.hear(tone(1));
    CHECK_FALSE(server.open());
    server.hear(quiet(1));
    CHECK(server.open() == mode::chat);
  }
}

TEST_CASE("Live: what is delegated to the client is told without its text, and the answer goes to the conversation") {
  live_driver server(delegating());
  server.begin({{"delegation", {{"type", "client"}}}});
  CHECK(got(server.asked(), "session.init").at(0)["payload"]["tools"].size() == 4);
  const auto told = server.inner(clock_call("call_1"));
  REQUIRE(told.size() == 1);
  CHECK(told[0]["type"] == "session.delegation.created");
  CHECK(told[0]["delegation"] == json{{"id", "call_1"}, {"target", "client"}, {"type", "delegation"}});
  CHECK(told[0]["offset_ms"].is_number_integer());

  CHECK(server.send(answer_delegation("thinking", "call_1", "Looking it up."))[0]["type"] ==
        "session.thinking.appended");
  CHECK(got(server.asked(), "input.tool_result").empty());
  CHECK(server.send(answer_delegation("commentary", "call_1", "It is 14:30."))[0]["type"] ==
        "session.commentary.appended");
  const auto results = got(server.asked(), "input.tool_result");
  REQUIRE(results.size() == 1);
  CHECK(results[0]["content"] == "It is 14:30.");
  CHECK(server.open() == mode::audio);

  // More of it is said like any commentary.
  server.send(answer_delegation("commentary", "call_1", "And it is late."));
  CHECK(server.open() == mode::chat);
  CHECK(server.send(answer_delegation("commentary", "call_x", "?"))[0]["error"]["param"] == "delegation_id");
}

TEST_CASE("Live: a client that never answers is told that its delegation is over") {
  live_driver server(delegating());
  server.begin({{"delegation", {{"type", "client"}}}});
  server.inner(clock_call("call_1"));
  const auto told = server.inner(protocol::duplex_call_abort{"call_1", "timeout"});
  REQUIRE(told.size() == 1);
  CHECK(told[0]["code"] == "delegation_expired");
  server.asked();
  server.send(answer_delegation("commentary", "call_1", "Late."));
  CHECK(got(server.asked(), "input.tool_result").empty());
}

TEST_CASE("Live: what is delegated to responses is a call in the events of that API, and takes its result") {
  live_driver server(delegating());
  server.begin(to_responses({clock_tool, {{"type", "web_search"}}}));
  CHECK(server.seen().size() == 1); // nothing is unavailable
  CHECK(got(server.asked(), "session.init").at(0)["payload"]["tools"].size() == 1);
  const auto told = server.inner(clock_call("call_1"));
  REQUIRE(told.size() == 7);
  CHECK(told[0]["delegation"]["target"] == "responses");
  const auto response = told[0]["delegation"]["response_id"];
  call_names nested;
  for (const auto& each : told)
    if (each["type"] == "response.event") {
      CHECK(each["delegation_id"] == "call_1");
      CHECK(each["event"]["sequence_number"] == nested.size());
      nested.push_back(each["event"]["type"]);
    }
  CHECK(nested == call_names{"response.created", "response.output_item.added", "response.function_call_arguments.delta",
                             "response.function_call_arguments.done", "response.output_item.done",
                             "response.completed"});
  CHECK(told[6]["event"]["response"]["id"] == response);
  CHECK(told[6]["event"]["response"]["usage"]["input_tokens"] == 55);
  CHECK(told[6]["event"]["response"]["usage"]["total_tokens"] == 64);
  CHECK(told[5]["event"]["item"]["arguments"] == R"({"zone": "UTC"})");
  server.asked();
  CHECK(server.send(live_output("call_1", "14:30")).empty());
  CHECK(server.send({{"type", "response.create"}}).empty());
  CHECK(got(server.asked(), "input.tool_result").at(0)["content"] == "14:30");
  CHECK(server.send(live_output("call_1", "again"))[0]["error"]["code"] == "invalid_tool_call_id");
  CHECK(server.send(answer_delegation("commentary", "call_1", "x"))[0]["error"]["param"] == "delegation_id");
}

TEST_CASE("Live: two delegations at once are answered in any order, each once") {
  live_driver server(delegating());
  server.begin(to_responses(json::array({clock_tool})));
  server.inner(clock_call("call_1"));
  server.inner(clock_call("call_2"));
  server.asked();
  for (const auto* const id : {"call_2", "call_1"}) CHECK(server.send(live_output(id, id)).empty());
  const auto results = got(server.asked(), "input.tool_result");
  REQUIRE(results.size() == 2);
  CHECK(results[0]["tool_call_id"] == "call_2");
  CHECK(results[1]["tool_call_id"] == "call_1");
}

TEST_CASE("Live: a result is told, too, when the session that asked for it is gone") {
  live_driver server(delegating());
  server.begin(to_responses(json::array({clock_tool})));
  server.inner(clock_call("call_1"));
  server.inner_closes();
  server.asked();
  CHECK(server.send(live_output("call_1", "14:30")).empty());
  server.wait(std::chrono::seconds(3));
  REQUIRE(server.open() == mode::chat);
  server.grant();
  CHECK(server.asked().back().dump().find("The result of get_time is: 14:30") != std::string::npos);
  CHECK(server.send(live_output("call_1", "14:30"))[0]["error"]["code"] == "invalid_tool_call_id");
}

TEST_CASE("Live: an update changes what it names, and says why nothing is delegated") {
  live_driver server(delegating());
  server.begin(to_responses(json::array({clock_tool})));
  const auto update = [&](const json& responses) {
    return server.send(
        {{"type", "session.update"}, {"session", {{"delegation", {{"type", "responses"}, {"responses", responses}}}}}});
  };
  const auto reopened_with = [&] {
    server.asked();
    server.wait(std::chrono::seconds(1));
    const auto opened = got(server.asked(), "session.init");
    return opened.empty() ? -1 : static_cast<int>(opened.back()["payload"].value("tools", json::array()).size());
  };
  auto told = update({{"instructions", "Be brief."}});
  CHECK(told.size() == 1);
  CHECK(told[0]["session"]["delegation"]["responses"]["tools"].size() == 1);
  CHECK(reopened_with() == -1); // nothing changes for it
  update({{"tool_choice", "none"}});
  CHECK(reopened_with() == 0);
  server.grant();
  update({{"tool_choice", "auto"}});
  CHECK(reopened_with() == 1);
  server.grant();
  told = update({{"tools", json::array()}});
  CHECK(told.at(1)["code"] == "delegation_unavailable");
  auto large = clock_tool;
  large["description"] = std::string(17'000, 'x');
  told = update({{"tools", json::array({large})}});
  CHECK(told.at(1)["message"].get<std::string>().find("16 KiB") != std::string::npos);
}

TEST_CASE("Live: functions are checked, whether they name their type or not") {
  const json twisted{{"type", 7}};
  for (auto tools : {clock_tool, json::array({{{"name", "f"}, {"parameters", twisted}}}),
                     json::array({{{"type", "function"}, {"name", "f"}, {"parameters", twisted}}})}) {
    live_driver server(delegating());
    CHECK(server.start(to_responses(tools)).at(0)["error"]["code"] == "invalid_value");
  }
}

TEST_CASE("Live: decisions are refused by name, and who names no delegation has nothing delegated") {
  live_driver server(delegating());
  const auto refused = server.start({{"delegation", {{"type", "decisions"}}}});
  REQUIRE(refused.size() == 1);
  CHECK(refused[0]["error"]["code"] == "delegation_unavailable");
  CHECK(refused[0]["error"]["param"] == "session.delegation.type");
  live_driver plain(delegating());
  plain.begin();
  CHECK_FALSE(got(plain.asked(), "session.init").at(0)["payload"].contains("tools"));
}

} // namespace parley::tests
