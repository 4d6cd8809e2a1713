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

TEST_CASE("a result of a call that nobody made is taken, as the user's words") {
  realtime_driver server;
  server.update(tools_session());
  const auto told =
      server.send(tool_item({{"type", "function_call_output"}, {"call_id", "call_x"}, {"output", "rain"}}));
  CHECK(types(told) == event_names{"conversation.item.added", "conversation.item.done"});
  server.send({{"type", "response.create"}});
  const auto asked = turn_asked(server);
  REQUIRE(asked["messages"].size() == 1);
  CHECK(asked["messages"][0]["role"] == "user");
  CHECK(asked["messages"][0]["content"][0]["text"] == "rain");
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
