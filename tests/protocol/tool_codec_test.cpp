#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/server_codec.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>

using namespace parley::protocol;

namespace {

result<chat_append_event> turn_with(const std::string& more) {
  const auto frame = R"({"type":"input.append","input":{"messages":[{"role":"user","content":"x"}],)" + more + "}}";
  const auto peeked = peek(frame);
  REQUIRE(peeked);
  return decode_chat_append(*peeked);
}

std::string refused(const std::string& more) {
  const auto turn = turn_with(more);
  return turn ? "accepted" : turn.error().message;
}

const std::string tools_f = R"("tools":[{"type":"function","name":"f","parameters":{"type":"object"}}])";

} // namespace

TEST_CASE("tools are shown to the model in one form, however they were written") {
  const std::string shown =
      R"({"type": "function", "function": {"name": "f", "description": "é\n", "parameters": {"type": "object", "required": ["a", "b"]}}})";
  const auto flat = turn_with(
      R"("tools":[{"type":"function","name":"f","description":"\u00e9\n","parameters":{"type":"object","required":["a","b"]}}])");
  const auto nested = turn_with(
      R"("tools":[{"type":"function","function":{"name":"f", "description":"\u00e9\n", "parameters":{"type":"object","required":["a","b"]}}}])");
  REQUIRE(flat);
  REQUIRE(nested);
  CHECK(flat->tools[0].signature == shown);
  CHECK(nested->tools[0].signature == shown);
  CHECK(flat->tools[0].name == "f");
  CHECK(flat->tools[0].parameters == R"({"type": "object", "required": ["a", "b"]})");
  CHECK_FALSE(flat->tool_required);
}

TEST_CASE("which tool is called") {
  CHECK(turn_with(tools_f + R"(,"tool_choice":"none")")->tools.empty());
  CHECK(turn_with(tools_f + R"(,"tool_choice":"required")")->tool_required);
  CHECK(turn_with(tools_f + R"(,"tool_choice":{"type":"function","name":"f"})")->tool_name == "f");
  CHECK(turn_with(tools_f + R"(,"tool_choice":{"type":"function","function":{"name":"f"}})")->tool_name == "f");
  CHECK(refused(tools_f + R"(,"tool_choice":{"type":"function","name":"g"})") ==
        "input.tool_choice.name: none of the tools");
  CHECK(refused(tools_f + R"(,"tool_choice":"any")") ==
        "input.tool_choice: none of auto, none, required, and of the tools");
  CHECK(refused(R"("tool_choice":"required")") == "input.tool_choice: there are no tools");
}

TEST_CASE("tools that are none") {
  CHECK(refused(R"("tools":{})") == "input.tools: not an array");
  CHECK(refused(R"("tools":[{"type":"mcp","name":"f"}])") == "input.tools[0].type: not function");
  CHECK(refused(R"("tools":[{"type":"function"}])") == "input.tools[0].name: required");
  CHECK(refused(R"("tools":[{"name":"a b"}])") == "input.tools[0].name: not 1 to 64 of A-Z, a-z, 0-9, _ and -");
  CHECK(turn_with(tools_f + R"(,"response_format":{"type":"json_object"})")->answer_schema == R"({"type": "object"})");
  CHECK(refused(R"("response_format":{"type":"json_schema","schema":{"type":"array"}})") ==
        "input.response_format.schema: not the schema of an object");
}

TEST_CASE("a call on the wire") {
  encode_context context;
  context.spoken = dialect::current;
  context.session_id = "sess_a";
  CHECK(nlohmann::json::parse(encode(response_tool_call{"resp_1", "input_1", {"call_1", "f", "{}"}}, context)) ==
        nlohmann::json{{"type", "response.tool_call"},
                       {"session_id", "sess_a"},
                       {"response_id", "resp_1"},
                       {"input_id", "input_1"},
                       {"id", "call_1"},
                       {"name", "f"},
                       {"arguments", "{}"}});
}

TEST_CASE("other ways to say which tool is called") {
  const std::string two = R"("tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}])";
  const auto named = turn_with(two + R"(,"tool_choice":"g")"); // as LiveKit Agents for Node writes it
  REQUIRE(named);
  CHECK(named->tool_required);
  CHECK(named->tool_name == "g");
  CHECK(turn_with(two + R"(,"tool_choice":{"type":"required"})")->tool_required);
  CHECK(turn_with(two + R"(,"tool_choice":{"type":"none"})")->tools.empty());
  const auto allowed = turn_with(
      two +
      R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"g"}}]}})");
  REQUIRE(allowed);
  CHECK(allowed->tool_required);
  REQUIRE(allowed->tools.size() == 1);
  CHECK(allowed->tools[0].name == "g");
  CHECK(refused(two + R"(,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"name":"h"}]})") ==
        "input.tool_choice.tools[0].name: none of the tools");
  CHECK(refused(two + R"(,"tool_choice":{"type":"mcp","server_label":"x"})") == "input.tool_choice.type: not function");
  CHECK(refused(two + R"(,"tool_choice":{"type":"function"})") == "input.tool_choice.name: required");
  CHECK(refused(two + R"(,"tool_choice":5)") == "input.tool_choice: not an object");
}

TEST_CASE("tools that cannot be called") {
  const auto with = [](const std::string& more) {
    return refused(R"("tools":[{"type":"function","name":"f",)" + more + "}]");
  };
  CHECK(with(R"("parameters":{"type":"array"})") ==
        "input.tools[0].parameters.type: the parameters of a function are an object");
  CHECK(with(R"("parameters":{"type":["object","null"]})") == "accepted");
  CHECK(with(R"("parameters":{})") == "accepted");
  CHECK(with(R"("parameters":"{}")") == "input.tools[0].parameters: not an object");
  CHECK(with(R"("description":{})") == "input.tools[0].description: not a string");
  std::string many;
  for (int i = 0; i < 129; ++i) many += (i > 0 ? "," : "") + std::string(R"({"name":"f)") + std::to_string(i) + "\"}";
  CHECK(refused(R"("tools":[)" + many + "]") == "input.tools: more than 128 tools or 64 KiB");
}
