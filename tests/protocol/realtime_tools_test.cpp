#include "tests/protocol/realtime_driver.hpp"

#include <catch2/catch.hpp>

using namespace parley::tests;
using nlohmann::json;
using event_names = std::vector<std::string>;

namespace {

const json weather_tool{{"type", "function"}, {"name", "get_weather"}, {"parameters", {{"type", "object"}}}};

json tools_session(const json& choice = "auto") {
  return {{"audio", {{"input", {{"turn_detection", nullptr}}}}}, {"tools", {weather_tool}}, {"tool_choice", choice}};
}

json tool_item(json item) {
  return {{"type", "conversation.item.create"}, {"item", std::move(item)}};
}

const json asks =
    tool_item({{"type", "message"}, {"role", "user"}, {"content", {{{"type", "input_text"}, {"text", "Weather?"}}}}});

json called(const char* id) {
  return {{"type", "response.tool_call"}, {"id", id}, {"name", "get_weather"}, {"arguments", R"({"city":"Paris"})"}};
}

/// The append that the inner session got.
json turn_asked(realtime_driver& server) {
  server.grant();
  for (const auto& frame : server.asked())
    if (frame["type"] == "input.append") return frame["input"];
  return {};
}

} // namespace

TEST_CASE("a call is an item, told in the order of the table") {
  realtime_driver server;
  server.update(tools_session("required"));
  server.send(asks);
  server.send({{"type", "response.create"}});
  const auto asked = turn_asked(server);
  CHECK(asked["tools"] == json{weather_tool});
  CHECK(asked["tool_choice"] == "required");

  const auto begun = server.inner(called("call_1").dump());
  REQUIRE(types(begun) == event_names{"response.output_item.added", "conversation.item.added",
                                      "response.function_call_arguments.delta"});
  CHECK(begun[0]["item"]["status"] == "in_progress");
  CHECK(begun[0]["item"]["arguments"] == "");
  const auto told = server.inner(called("call_2").dump());
  REQUIRE(types(told) == event_names{"response.function_call_arguments.done", "conversation.item.done",
                                     "response.output_item.done", "response.output_item.added",
                                     "conversation.item.added", "response.function_call_arguments.delta"});
  CHECK(told[0]["name"] == "get_weather");
  CHECK(told[0]["arguments"] == R"({"city":"Paris"})");
  CHECK(told[2]["item"]["call_id"] == "call_1");
  CHECK(told[2]["item"]["status"] == "completed");
  const auto done = last(server.chat_done(), "response.done")["response"];
  CHECK(done["status"] == "completed");
  CHECK(done["output"].size() == 2);
  server.seen().check_quiet();
}

TEST_CASE("text before a call is an item of its own") {
  realtime_driver server;
  auto session = tools_session();
  session["output_modalities"] = {"text"};
  server.update(session);
  server.send(asks);
  server.send({{"type", "response.create"}});
  turn_asked(server);
  server.chat_delta("Let me look.");
  server.inner(called("call_1").dump());
  const auto output = last(server.chat_done(), "response.done")["response"]["output"];
  REQUIRE(output.size() == 2);
  CHECK(output[0]["content"][0]["text"] == "Let me look.");
  CHECK(output[1]["type"] == "function_call");
  server.seen().check_quiet();
}

TEST_CASE("a result waits for the client to ask for the answer, and reaches the model") {
  realtime_driver server;
  server.update(tools_session());
  server.send(asks);
  server.send({{"type", "response.create"}});
  turn_asked(server);
  server.inner(called("call_1").dump());
  server.chat_done();
  server.send(tool_item({{"type", "function_call_output"}, {"call_id", "call_1"}, {"output", "sunny"}}));
  server.wait(std::chrono::seconds(2));
  CHECK_FALSE(server.open());

  server.send({{"type", "response.create"}, {"response", {{"tool_choice", "none"}}}});
  const auto asked = turn_asked(server);
  CHECK(asked["tool_choice"] == "none");
  REQUIRE(asked["messages"].size() == 3);
  CHECK(asked["messages"][1]["role"] == "assistant");
  CHECK(asked["messages"][1]["tool_calls"][0]["name"] == "get_weather");
  CHECK_FALSE(asked["messages"][1].contains("content"));
  CHECK(asked["messages"][2]["role"] == "tool");
  CHECK(asked["messages"][2]["content"][0]["text"] == "sunny");
}

TEST_CASE("a result of a call that nobody made is refused, and has no place in the conversation") {
  realtime_driver server;
  server.update(tools_session());
  const auto told =
      server.send(tool_item({{"type", "function_call_output"}, {"call_id", "call_x"}, {"output", "rain"}}));
  REQUIRE(types(told) == event_names{"error"});
  CHECK(told[0]["error"]["code"] == "invalid_tool_call_id");
  CHECK(told[0]["error"]["message"] == "Tool call ID 'call_x' not found in conversation.");
  CHECK(told[0]["error"]["param"] == "item.call_id");
  const json result{{"type", "function_call_output"}, {"call_id", "call_x"}, {"output", "rain"}};
  const auto beside =
      server.send({{"type", "response.create"}, {"response", {{"conversation", "none"}, {"input", {result}}}}});
  REQUIRE(types(beside) == event_names{"error"});
  CHECK(beside[0]["error"]["param"] == "response.input[0].call_id");
  server.send({{"type", "response.create"}});
  const auto asked = turn_asked(server);
  REQUIRE(asked["messages"].size() == 1);
  CHECK(asked["messages"][0]["content"][0]["text"] == "Please begin the conversation.");
}

namespace {

json call_item(const char* id, const char* city) {
  return tool_item({{"type", "function_call"},
                    {"call_id", id},
                    {"name", "get_weather"},
                    {"arguments", json{{"city", city}}.dump()}});
}

json result_item(const char* id, const char* output) {
  return tool_item({{"type", "function_call_output"}, {"call_id", id}, {"output", output}});
}

/// The prompt's messages after these items, each as "role:words" or "role:calls".
event_names prompt_after(const std::vector<json>& items) {
  realtime_driver server;
  server.update(tools_session());
  for (const auto& each : items) REQUIRE(types(server.send(each)).front() != "error");
  server.send({{"type", "response.create"}});
  event_names out;
  const auto asked = turn_asked(server);
  for (const auto& each : asked["messages"]) {
    auto line = each["role"].get<std::string>() + ":";
    if (each.contains("content"))
      for (const auto& part : each["content"]) line += part["text"].get<std::string>();
    if (each.contains("tool_calls"))
      for (const auto& call : each["tool_calls"])
        line += json::parse(call["arguments"].get<std::string>())["city"].get<std::string>() + ";";
    out.push_back(line);
  }
  return out;
}

} // namespace

TEST_CASE("a result belongs to the call with its id, whenever it comes") {
  const auto paris = call_item("call_a", "Paris"), rome = call_item("call_b", "Rome");
  const auto sun = result_item("call_a", "sun"), rain = result_item("call_b", "rain");
  const event_names right{"user:Weather?", "assistant:Paris;Rome;", "tool:sun", "tool:rain"};
  CHECK(prompt_after({asks, paris, rome, sun, rain}) == right);
  CHECK(prompt_after({asks, paris, rome, rain, sun}) == right);
  CHECK(prompt_after({asks, paris, rome, rain, asks, sun}) ==
        event_names{"user:Weather?", "assistant:Paris;Rome;", "tool:sun", "tool:rain", "user:Weather?"});
  CHECK(prompt_after({asks, paris, asks, rome, rain, sun}) ==
        event_names{"user:Weather?", "assistant:Paris;", "tool:sun", "user:Weather?", "assistant:Rome;", "tool:rain"});
  CHECK(prompt_after({asks, paris, sun, rome, rain}) ==
        event_names{"user:Weather?", "assistant:Paris;", "tool:sun", "assistant:Rome;", "tool:rain"});
  // The one that is missing leaves its place; a second one is news that the user tells.
  CHECK(prompt_after({asks, paris, rome, rain}) ==
        event_names{"user:Weather?", "assistant:Paris;Rome;", "tool:(no result yet)", "tool:rain"});
  CHECK(prompt_after({asks, paris, sun, result_item("call_a", "fog")}) ==
        event_names{"user:Weather?", "assistant:Paris;", "tool:sun", "user:fog"});
}

TEST_CASE("tools that cannot be called are refused when they are set") {
  const auto fault = [](const json& session) {
    realtime_driver server;
    const auto told = server.update(session);
    return told.back()["type"] == "error"
               ? told.back()["error"]["param"].dump() + " " + told.back()["error"]["code"].get<std::string>()
               : "accepted";
  };
  const auto with = [](const char* name, json value) {
    auto tool = weather_tool;
    tool[name] = std::move(value);
    return json{{"tools", {weather_tool, tool}}};
  };
  CHECK(fault(with("name", "lights.turn_on")) == "\"session.tools[1].name\" invalid_value");
  CHECK(fault(with("name", "")) == "\"session.tools[1].name\" invalid_value");
  CHECK(fault(with("name", nullptr)) == "\"session.tools[1].name\" invalid_value");
  CHECK(fault(with("type", "mcp")) == "\"session.tools[1].type\" invalid_value");
  CHECK(fault(with("parameters", "{}")) == "\"session.tools[1].parameters\" invalid_value");
  CHECK(fault(with("parameters", {{"type", "string"}})) == "\"session.tools[1].parameters.type\" invalid_value");
  CHECK(fault({{"tools", {{{"type", "function"}}}}}) == "\"session.tools[0].name\" missing_required_parameter");
  CHECK(fault({{"tools", std::vector<json>(129, weather_tool)}}) == "\"session.tools\" invalid_value");
  CHECK(fault({{"tools", {weather_tool}}, {"tool_choice", "any"}}) == "\"session.tool_choice\" invalid_value");
  CHECK(fault({{"tools", {weather_tool}}, {"tool_choice", {{"type", "function"}, {"name", "f"}}}}) ==
        "\"session.tool_choice.name\" invalid_value");
  CHECK(fault({{"tool_choice", "get_weather"}}) == "\"session.tool_choice\" invalid_value");
  CHECK(fault({{"tool_choice", "required"}}) == "accepted"); // its tools may come later
  CHECK(fault(with("parameters", nullptr)) == "accepted");

  realtime_driver server;
  server.update(tools_session());
  for (const json& response : {json{{"tools", {{{"type", "function"}, {"name", "a b"}}}}}, json{{"tool_choice", "f"}},
                               json{{"tools", json::array()}, {"tool_choice", "required"}}}) {
    const auto told = server.send({{"type", "response.create"}, {"response", response}});
    INFO(response.dump());
    REQUIRE(types(told) == event_names{"error"});
    CHECK(told[0]["error"]["param"].get<std::string>().starts_with("response.tool"));
    CHECK(told[0]["error"]["message"].get<std::string>().size() > 30);
  }
}

TEST_CASE("the choice of a tool is understood and shown in one form") {
  realtime_driver server;
  const json named{{"type", "function"}, {"name", "get_weather"}};
  const auto choice_after = [&](const json& session) {
    return last(server.update(session), "session.updated")["session"]["tool_choice"];
  };
  CHECK(choice_after(tools_session("get_weather")) == named); // as LiveKit Agents for Node writes it
  CHECK(choice_after({{"instructions", "Be brief."}}) == named);
  CHECK(choice_after(tools_session(json{{"type", "function"}, {"function", {{"name", "get_weather"}}}})) == named);
  server.send(asks);
  server.send({{"type", "response.create"}});
  CHECK(turn_asked(server)["tool_choice"] == named);
  server.inner(called("call_1").dump());
  server.chat_done();

  const json nested{{"type", "function"}, {"function", {{"name", "f"}, {"description", "x"}}}};
  const auto session = last(server.update({{"tools", {nested}}}), "session.updated")["session"];
  CHECK(session["tool_choice"] == "auto"); // the one that was chosen is gone
  CHECK(session["tools"] == json{{{"type", "function"}, {"name", "f"}, {"description", "x"}}});
}

TEST_CASE("a response that fails says why") {
  realtime_driver server;
  server.update(tools_session());
  server.send(asks);
  const auto details_after = [&](const json& error) {
    server.send({{"type", "response.create"}});
    turn_asked(server);
    return last(server.inner(json{{"type", "error"}, {"error", error}}.dump()),
                "response.done")["response"]["status_details"];
  };
  CHECK(details_after({{"code", "invalid_payload"}, {"message", "input.tools[0]: wrong"}, {"type", "client_error"}}) ==
        json{{"type", "failed"},
             {"error",
              {{"type", "invalid_request_error"}, {"code", "invalid_value"}, {"message", "input.tools[0]: wrong"}}}});
  const auto busy = details_after({{"code", "worker_busy"}, {"message", "x"}, {"type", "server_error"}})["error"];
  CHECK(busy["code"] == "server_busy");
  CHECK(busy["message"] == "The server had no free slot for this response in time.");
}

namespace {

std::string part(const char* id, const char* name, const char* arguments) {
  json event{{"type", "response.tool_call.delta"}, {"id", id}, {"arguments", arguments}};
  if (*name != 0) event["name"] = name;
  return event.dump();
}

} // namespace

TEST_CASE("the arguments of a call come as they are made") {
  realtime_driver server;
  auto session = tools_session();
  session["output_modalities"] = {"text"};
  server.update(session);
  server.send(asks);
  server.send({{"type", "response.create"}});
  CHECK(turn_asked(server)["tool_call_deltas"] == true);
  server.chat_delta("Let me look.");
  auto told = server.inner(part("call_1", "get_weather", ""));
  const auto added = last(told, "response.output_item.added")["item"];
  CHECK(added["name"] == "get_weather");
  CHECK(added["call_id"] == "call_1");
  told = server.inner(part("call_1", "", R"({"city":)"));
  REQUIRE(types(told) == event_names{"response.function_call_arguments.delta"});
  CHECK(told[0]["delta"] == R"({"city":)");
  server.inner(part("call_1", "", R"("Paris"})"));
  told = server.inner(part("call_2", "get_weather", "{}")); // the first one is over
  CHECK(types(told) == event_names{"response.function_call_arguments.done", "conversation.item.done",
                                   "response.output_item.done", "response.output_item.added", "conversation.item.added",
                                   "response.function_call_arguments.delta"});
  CHECK(told[0]["arguments"] == R"({"city":"Paris"})");
  CHECK(types(server.inner(called("call_1").dump())).empty()); // the whole call says nothing new
  auto second = called("call_2");
  second["arguments"] = "{}";
  CHECK(types(server.inner(second.dump())).empty());
  const auto output = last(server.chat_done(), "response.done")["response"]["output"];
  REQUIRE(output.size() == 3);
  CHECK(output[1]["arguments"] == R"({"city":"Paris"})");
  CHECK(output[2]["arguments"] == "{}");
  server.seen().check_quiet();
}

TEST_CASE("a call that is broken off is incomplete") {
  realtime_driver server;
  server.update(tools_session());
  server.send(asks);
  server.send({{"type", "response.create"}});
  turn_asked(server);
  server.inner(part("call_1", "get_weather", R"({"ci)"));
  const auto told = server.send({{"type", "response.cancel"}});
  CHECK(last(told, "response.output_item.done")["item"]["status"] == "incomplete");
  CHECK(last(told, "response.done")["response"]["status"] == "cancelled");
  server.seen().check_quiet();
}

TEST_CASE("whoever has the result of a call at once may ask for the next answer with it") {
  realtime_driver server;
  server.update(tools_session());
  server.send(asks);
  server.send({{"type", "response.create"}});
  turn_asked(server);
  // A client that runs its function when the call's item is done does not look for the end of the response.
  CHECK(last(server.inner(called("call_1").dump()), "response.output_item.done").is_null());
  CHECK(types(server.chat_done()) == event_names{"response.function_call_arguments.done", "conversation.item.done",
                                                 "response.output_item.done", "response.done", "rate_limits.updated"});
  server.send(tool_item({{"type", "function_call_output"}, {"call_id", "call_1"}, {"output", "sunny"}}));
  CHECK(types(server.send({{"type", "response.create"}})) == event_names{"response.created"});
}

TEST_CASE("a call that was whole stays so if its answer is broken off") {
  realtime_driver server;
  server.update(tools_session());
  server.send(asks);
  server.send({{"type", "response.create"}});
  turn_asked(server);
  server.inner(called("call_1").dump());
  const auto told = server.send({{"type", "response.cancel"}});
  CHECK(last(told, "response.output_item.done")["item"]["status"] == "completed");
  CHECK(last(told, "response.done")["response"]["status"] == "cancelled");
  server.seen().check_quiet();
}
