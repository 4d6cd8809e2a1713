#include "protocol/codec/client_codec.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace parley::protocol;

namespace {

std::string outcome_of(const std::string& more) {
  const auto frame = R"({"type":"input.append","input":{"messages":[{"role":"user","content":"x"}],)" + more + "}}";
  const auto peeked = peek(frame);
  REQUIRE(peeked);
  const auto turn = decode_chat_append(*peeked);
  return turn ? "accepted" : turn.error().message;
}

std::string format(const std::string& schema, const char* strict = R"("strict":true,)") {
  return outcome_of(R"("response_format":{"type":"json_schema","json_schema":{"name":"n",)" + std::string(strict) +
                    R"("schema":)" + schema + "}}");
}

std::string tool(const std::string& schema, const char* strict = R"("strict":true,)") {
  return outcome_of(
      R"("tools":[{"type":"function","function":{"name":"g"}},{"type":"function","function":{"name":"f",)" +
      std::string(strict) + R"("parameters":)" + schema + "}}]");
}

const std::string format_path = "input.response_format.json_schema.schema";

} // namespace

TEST_CASE("what a strict schema asks for and cannot have is refused by its path") {
  CHECK(format(R"({"type":"object","properties":{"tags":{"type":"array","uniqueItems":true}}})") ==
        format_path + ".properties.tags.uniqueItems: is not supported");
  CHECK(format(R"({"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"not":{"type":"string"}}]}}})") ==
        format_path + ".properties.a.anyOf[1].not: is not supported");
  CHECK(format(R"({"$ref":"https://example.org/other.json"})") ==
        format_path + ".$ref: is not a reference within the schema");
  CHECK(tool(R"({"type":"object","properties":{"a":{"pattern":"\\ba"}}})") ==
        "input.tools[1].function.parameters.properties.a.pattern: has word boundaries, which are not followed");
  CHECK(tool(R"({"type":"object","$defs":{"u":{"multipleOf":0.1}},"properties":{"a":{"$ref":"#/$defs/u"}}})") ==
        "input.tools[1].function.parameters.$defs.u.multipleOf: is only supported for integers");
  CHECK(tool(R"({"type":"object","required":["a"],"properties":{"a":false}})") ==
        "input.tools[1].function.parameters: no value obeys it that could be written");
}

TEST_CASE("what a strict schema asks for and has") {
  const std::string good =
      R"({"type":"object","properties":{"a":{"$ref":"#/$defs/e"},"b":{"type":"integer","minimum":1,"maximum":5}},)"
      R"("required":["a","b"],"additionalProperties":false,"$defs":{"e":{"enum":["x","y"]}}})";
  CHECK(format(good) == "accepted");
  CHECK(tool(good) == "accepted");
  CHECK(format(R"({"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"next":{"$ref":"#/$defs/t"}}}}})") ==
        "accepted");
  CHECK(format(R"({"properties":{"a":{"type":"string","maxLength":4}}})") ==
        "accepted"); // of an object: nothing else is said
}

TEST_CASE("without strict, what cannot be honoured is left out") {
  for (const auto* lax : {"", R"("strict":false,)", R"("strict":null,)"}) {
    CHECK(format(R"({"type":"object","properties":{"a":{"uniqueItems":true}}})", lax) == "accepted");
    CHECK(tool(R"({"type":"object","properties":{"a":{"pattern":"\\ba"}}})", lax) == "accepted");
    CHECK(format(R"({"$ref":"#/$defs/t","$defs":{"t":{"type":"object"}}})", lax) == "accepted");
    CHECK(format(R"({"type":["array","null"]})", lax) == format_path + ": not the schema of an object");
  }
  CHECK(format("{}", R"("strict":1,)") == "input.response_format.json_schema.strict: neither true nor false");
}

TEST_CASE("checking the schemas of one request has an end") {
  // Each of these would have a table of thousands of states: together they are too large, where alone none is.
  const auto function = [](int number) {
    return R"({"type":"function","name":"f)" + std::to_string(number) +
           R"(","strict":true,"parameters":{"type":"object","properties":{"a":{"pattern":"[ab]*a[ab]{8}"}}}})";
  };
  std::string all = function(0);
  CHECK(outcome_of(R"("tools":[)" + all + "]") == "accepted");
  for (auto i = 1; i < 100; ++i) all += "," + function(i);
  const auto why = outcome_of(R"("tools":[)" + all + "]");
  CHECK(why.starts_with("input.tools["));
  CHECK(why != "accepted");
}
