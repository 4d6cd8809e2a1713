#include "grammar/json_state.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <random>
#include <string>

using namespace parley::grammar;

namespace {

json_grammar grammar_of(const std::string& schema) {
  const std::vector<json_grammar::form> forms{{"", schema, ""}};
  return json_grammar(forms);
}

bool whole(const json_grammar& grammar, std::string_view text) {
  json_state state(grammar);
  return state.feed(text) && state.done();
}

const char* const person = R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},
  "tags":{"type":"array","items":{"enum":["a","ab",1,12]}},"home":{"$ref":"#/$defs/place"},
  "nick":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["name","home"],
  "$defs":{"place":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}}})";

} // namespace

TEST_CASE("any object is JSON and nothing else") {
  const auto any = grammar_of("");
  for (const auto* text :
       {"{}", R"({"a": [1, -2.5e+3, 0.1], "b":{"c":null},"d":"\u00e9\n\\\"é😀", "e": true})", R"({"":[],"x":[[],{}]})"})
    CHECK(whole(any, text));
  for (const auto* text : {"[]", "1", "{,}", R"({"a"})", R"({"a":})", R"({"a":01})", R"({"a":1.})", R"({"a":-})",
                           R"({"a":1,})", "{\"a\":\"\n\"}", R"({"a":"\x"})", R"({"a":"\ud800"})", R"({"a":tru})",
                           "{\"a\":\"\xC3(\"}", "{\"a\":\"\xED\xA0\x80\"}", "{} "})
    CHECK_FALSE(whole(any, text));
}

TEST_CASE("numbers are small enough for every reader") {
  const auto any = grammar_of("");
  const std::string digits(20, '9');
  CHECK(whole(any, "{\"a\":-" + digits + ".12345678901234567890123e+99}"));
  CHECK_FALSE(whole(any, "{\"a\":" + digits + "9}"));
  CHECK_FALSE(whole(any, R"({"a":1e100})"));
}

TEST_CASE("a schema is followed") {
  const auto rules = grammar_of(person);
  CHECK(whole(rules, R"({"name":"x","home":{"x":1.5}})"));
  CHECK(whole(rules, R"({"home": {"x": 0}, "tags": ["a", "ab", 1, 12], "name": "", "age": 7, "nick": null})"));
  CHECK_FALSE(whole(rules, R"({"name":"x"})"));              // a required one is missing
  CHECK_FALSE(whole(rules, R"({"name":"x","home":{}})"));    // in the reference too
  CHECK_FALSE(whole(rules, R"({"name":1,"home":{"x":1}})")); // another type
  CHECK_FALSE(whole(rules, R"({"name":"x","age":1.5,"home":{"x":1}})"));
  CHECK_FALSE(whole(rules, R"({"name":"x","name":"y","home":{"x":1}})")); // twice
  CHECK_FALSE(whole(rules, R"({"name":"x","other":1,"home":{"x":1}})"));
  CHECK_FALSE(whole(rules, R"({"name":"x","tags":["abc"],"home":{"x":1}})"));
  CHECK_THROWS(grammar_of("{"));
}

TEST_CASE("one of several forms, each with its own schema") {
  const std::vector<json_grammar::form> forms{{"f(", R"({"type":"object","properties":{"a":{}}})", ")"},
                                              {"fa(", "", ")!"}};
  const json_grammar either(forms);
  CHECK(whole(either, R"(f({"a":1}))"));
  CHECK(whole(either, R"(fa({"b":1})!)"));
  CHECK_FALSE(whole(either, R"(f({"b":1}))"));
  CHECK_FALSE(whole(either, R"(fa({})))"));
}

TEST_CASE("every beginning can be completed") {
  std::mt19937 random(7);
  const std::string bytes = "{}[]\",: 0123456789.-+eEtrufalsn\\dD\xC3\xA9\xF0\x9F\x98\x80\xED xyhomenagtick";
  for (const auto& grammar : {grammar_of(person), grammar_of("")})
    for (int round = 0; round < 400; ++round) {
      json_state state(grammar);
      std::string text;
      const auto size = 1 + random() % 120;
      for (int tries = 0; tries < 4000 && text.size() < size && !state.done(); ++tries) {
        const auto byte = bytes[random() % bytes.size()];
        auto next = state;
        if (!next.feed({&byte, 1})) continue;
        state = next;
        text += byte;
      }
      const auto rest = state.completion();
      INFO(text << " + " << rest);
      REQUIRE(state.feed(rest));
      REQUIRE(state.done());
      REQUIRE(nlohmann::json::accept(text + rest));
    }
}

TEST_CASE("what refers to the same part often unfolds once") {
  std::string values = "0";
  for (int i = 1; i < 9000; ++i) values += "," + std::to_string(i);
  const auto choice = [](const std::string& name) {
    std::string out = R"({"anyOf":[{"$ref":"#/d/)" + name + "\"}";
    for (int i = 0; i < 14; ++i) out += R"(,{"$ref":"#/d/)" + name + "\"}";
    return out + "]}";
  };
  const auto rules =
      grammar_of(R"({"type":"object","properties":{"x":)" + choice("a") + R"(},"required":["x"],"d":{"a":)" +
                 choice("b") + R"(,"b":)" + choice("c") + R"(,"c":{"enum":[)" + values + "]}}}");
  CHECK(rules.rules().rules.size() < 10);
  CHECK(whole(rules, R"({"x":8999})"));
  CHECK_FALSE(whole(rules, R"({"x":9000})"));
}

TEST_CASE("the rules of a schema have a size that they do not exceed") {
  std::string inner, names;
  for (int i = 0; i < 64; ++i) {
    const auto key = "\"" + std::string(440, 'k') + std::to_string(i) + "\"";
    inner += (i > 0 ? "," : "") + key + R"(:{"type":"null"})";
    names += (i > 0 ? "," : "") + key;
  }
  const auto outer = [](const std::string& of) {
    std::string properties, required;
    for (int i = 0; i < 64; ++i) {
      properties += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":{"$ref":"#/d/)" + of + "\"}";
      required += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\"";
    }
    return R"("type":"object","properties":{)" + properties + R"(},"required":[)" + required + "]";
  };
  const auto rules = grammar_of("{" + outer("a") + R"(,"d":{"a":{)" + outer("b") + R"(},"b":{"properties":{)" + inner +
                                R"(},"required":[)" + names + "]}}}");
  CHECK(rules.shortest_bytes() < 100'000);
  json_state state(rules);
  CHECK(state.feed(state.completion()));
  CHECK(state.done());
}

TEST_CASE("nesting has an end") {
  const auto any = grammar_of("");
  json_state state(any);
  CHECK_FALSE(state.feed("{\"a\":" + std::string(100, '[')));
}

TEST_CASE("long lists of a schema are gone through once, wherever they are referred to, and count against its size") {
  // Comparing each of 64 properties with each entry, at each of 16 depths, would take a minute.
  const auto schema = [](const std::string& base) {
    std::string properties = R"("p0":{"type":"null"})", chain = R"("c0":{"$ref":"#/$defs/b"})",
                uses = R"("q0":{"$ref":"#/$defs/c0"})";
    for (auto i = 1; i < 64; ++i) properties += ",\"p" + std::to_string(i) + "\":1";
    for (auto i = 1; i < 15; ++i) {
      const auto number = std::to_string(i);
      chain += ",\"c" + number + R"(":{"$ref":"#/$defs/c)" + std::to_string(i - 1) + "\"}";
      uses += ",\"q" + number + R"(":{"$ref":"#/$defs/c)" + number + "\"}";
    }
    return R"({"type":"object","properties":{)" + uses + R"(},"$defs":{)" + chain +
           R"(,"b":{"type":"object","properties":{)" + properties + "}," + base + "}}}";
  };
  const auto many = [](const std::string& entry) {
    std::string out = entry;
    for (auto i = 1; i < 300'000; ++i) out += "," + entry;
    return "[" + out + "]";
  };
  const auto required = grammar_of(schema(R"("required":)" + many("1")));
  CHECK(whole(required, R"({"q3":{}})")); // none of them is a name; and so long a list leaves no room for rules
  const auto named = grammar_of(schema(R"("required":["p0","p0"])"));
  CHECK(whole(named, R"({"q3":{"p0":null}})"));
  CHECK_FALSE(whole(named, R"({"q3":{}})"));
  CHECK(whole(grammar_of(R"({"type":)" + many("\"string\"") + "}"), R"("x")"));
  CHECK(grammar_of(R"({"anyOf":)" + many("1") + "}").rules().rules.size() <= 2);
}
