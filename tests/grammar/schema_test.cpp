#include "grammar/json_state.hpp"

#include <catch2/catch.hpp>

#include <random>
#include <string>

using namespace parley::grammar;

namespace {

json_grammar object_grammar(const std::string& schema) {
  const std::vector<json_grammar::form> forms{{"", schema, "", true}};
  return json_grammar(forms);
}

bool whole(const json_grammar& grammar, std::string_view text) {
  json_state state(grammar);
  return state.feed(text) && state.done();
}

std::string outcome_of(const std::string& schema) {
  auto work = most_work;
  const auto found = object_to(schema, true, work);
  CHECK(work > -most_work); // what is refused costs no more than twice what is allowed
  return found ? found->path + ": " + found->what : "good";
}

std::string shortest(const std::string& schema) {
  const auto grammar = object_grammar(schema);
  return json_state(grammar).completion();
}

/// An object of which `x` has the schema.
std::string with_x(const std::string& schema) {
  return R"({"type":"object","properties":{"x":)" + schema + R"(},"required":["x"],"additionalProperties":false})";
}

} // namespace

TEST_CASE("values are objects where only these are asked for, whatever the schema is") {
  for (const auto* schema :
       {"{}", R"({"type":["object","null"]})", R"({"anyOf":[{"type":"object"},{"type":"string"}]})",
        R"({"$ref":"#/$defs/a","$defs":{"a":{"required":["x"]}}})"}) {
    INFO(schema);
    CHECK(outcome_of(schema) == "good");
    const auto grammar = object_grammar(schema);
    CHECK(whole(grammar, R"({"x":1})"));
    CHECK_FALSE(whole(grammar, "null"));
    CHECK_FALSE(whole(grammar, "\"\""));
  }
}

TEST_CASE("a schema that no object obeys is any object, and an objection") {
  for (const auto* schema :
       {R"({"type":"string"})", "false", R"({"type":"object","required":["a"],"properties":{"a":false}})"}) {
    CHECK(outcome_of(schema) == ": no value obeys it that could be written");
    CHECK(whole(object_grammar(schema), R"({"b":[1]})"));
  }
}

TEST_CASE("a choice that leads back to itself has the values of its other branches") {
  const auto grammar =
      object_grammar(with_x(R"({"$ref":"#/$defs/a"})")
                         .replace(0, 1,
                                  R"({"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"type":"string"}]},)"
                                  R"("b":{"minLength":1,"anyOf":[{"$ref":"#/$defs/a"},{"type":"integer"}]}},)"));
  CHECK(whole(grammar, R"({"x":""})"));
  CHECK(whole(grammar, R"({"x":"a"})"));
  CHECK(whole(grammar, R"({"x":12})"));
  CHECK_FALSE(whole(grammar, R"({"x":true})"));
  CHECK_FALSE(whole(grammar, R"({"x":null})"));
}

TEST_CASE("a text keeps every branch that it may still be") {
  std::string branches;
  for (int i = 0; i < 32; ++i)
    branches += std::string(i > 0 ? "," : "") +
                R"({"type":"object","properties":{"of":{"type":"integer"},"kind":{"const":"k)" + std::to_string(i) +
                R"("},"v)" + std::to_string(i) + R"(":{"type":"null"}},"required":["kind","v)" + std::to_string(i) +
                R"("],"additionalProperties":false})";
  const auto schema = with_x(R"({"anyOf":[)" + branches + "]}");
  CHECK(outcome_of(schema) == "good");
  const auto grammar = object_grammar(schema);
  for (int i = 0; i < 32; ++i) {
    const auto name = std::to_string(i), other = std::to_string((i + 1) % 32);
    CHECK(whole(grammar, R"({"x": {"of": 12, "kind": "k)" + name + R"(", "v)" + name + R"(": null}})"));
    CHECK_FALSE(whole(grammar, R"({"x": {"of": 12, "kind": "k)" + name + R"(", "v)" + other + R"(": null}})"));
  }
  CHECK(outcome_of(with_x(R"({"anyOf":[)" + branches + R"(,{"type":"object","properties":{"z":{}}}]})")) ==
        ".properties.x.anyOf: has more than 32 branches of one type");
}

TEST_CASE("what nests in itself ends in time") {
  const auto grammar = object_grammar(
      R"({"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["next"]})");
  std::string text;
  json_state state(grammar), next(state);
  for (int i = 0; i < 31; ++i) {
    next = state;
    REQUIRE(next.feed(R"({"next":)"));
    state = next;
  }
  next = state;
  CHECK_FALSE(next.feed("{"));
  CHECK(state.completion() == "null" + std::string(31, '}'));
  CHECK(outcome_of(R"({"type":"object","properties":{"next":{"$ref":"#"}},"required":["next"]})") ==
        ": no value obeys it that could be written"); // it would have no end
}

TEST_CASE("the shortest value") {
  CHECK(shortest(with_x(R"({"enum":["abc",12,[1]]})")) == R"({"x":12})");
  CHECK(shortest(with_x(R"({"type":"string","minLength":3})")) == R"({"x":"aaa"})");
  CHECK(shortest(with_x(R"({"type":"string","pattern":"^[0-9]{2}-"})")).size() == std::string(R"({"x":"00-"})").size());
  CHECK(shortest(with_x(R"({"type":"array","items":{"type":"integer","minimum":10},"minItems":2})")) ==
        R"({"x":[10,10]})");
  CHECK(shortest(with_x(R"({"type":"integer","maximum":-3})")) == R"({"x":-3})");
  CHECK(shortest(R"({"type":"object","properties":{"long":{"minLength":9},"b":{"type":"null"}},"minProperties":1})") ==
        R"({"b":null})");
}

TEST_CASE("every beginning can be completed, in as many bytes as it is said") {
  const std::string schemas[] = {
      with_x(
          R"({"anyOf":[{"type":"string","pattern":"^[a-z]{2,5}(\\n|\u0007|\")$"},{"type":"number","minimum":-0.5,"maximum":12.25},)"
          R"({"type":"array","items":{"anyOf":[{"const":"a"},{"$ref":"#/properties/x"}]},"minItems":1,"maxItems":3}]})"),
      R"({"type":"object","properties":{"a":{"type":"integer","multipleOf":7},"b\"":{"type":"string","minLength":2,"maxLength":4}},"required":["a"],)"
      R"("additionalProperties":{"format":"date"},"patternProperties":{"^x":{"enum":[1,12,"1"]}},"minProperties":2,"maxProperties":4})"};
  std::mt19937 random(5);
  const std::string bytes = "{}[]\",: 0123456789.-+eEabcnulxyz\\u07\n\xC3\xA9";
  for (const auto& schema : schemas) {
    CHECK(outcome_of(schema) == "good");
    const auto grammar = object_grammar(schema);
    for (int round = 0; round < 300; ++round) {
      json_state state(grammar), next(state);
      std::string text;
      const auto size = 1 + random() % 90;
      for (int tries = 0; tries < 3000 && text.size() < size && !state.done(); ++tries) {
        const auto byte = bytes[random() % bytes.size()];
        next = state;
        if (!next.feed({&byte, 1})) continue;
        if (tries % 7 == 0) next.forget();
        state = next;
        text += byte;
        const auto rest = state.completion();
        INFO(text << " + " << rest);
        REQUIRE(rest.size() == state.completion_bytes());
        next = state;
        REQUIRE(next.feed(rest));
        REQUIRE(next.done());
      }
    }
  }
}

TEST_CASE("reading a schema has an end") {
  const auto many = [](int count, const auto& one) {
    std::string out;
    for (int i = 0; i < count; ++i) out += (i > 0 ? "," : "") + one(std::to_string(i));
    return out;
  };
  const auto choices = many(12, [](const std::string& i) {
    return R"({"anyOf":[{"minLength":)" + i + R"(},{"maxLength":9)" + i + R"(},{"minimum":)" + i + "}]}";
  });
  CHECK(outcome_of(with_x(R"({"allOf":[)" + choices + "]}")) == ": is too large with what it refers to");
  const auto numbers = many(7000, [](const std::string& i) { return i + ".5"; });
  CHECK(outcome_of(with_x(R"({"allOf":[{"enum":[)" + numbers + R"(,0]},{"enum":[1,)" + numbers + "]}]}")) ==
        ": is too large with what it refers to");
  const auto patterns = many(12, [](const std::string& i) { return R"({"pattern":"[ab]*a[ab]{)" + i + R"(}"})"; });
  CHECK(outcome_of(with_x(R"({"allOf":[)" + patterns + "]}")).ends_with(".pattern: has too many states"));
  CHECK(whole(object_grammar(with_x(R"({"allOf":[)" + choices + "]}")), R"({"y":1})")); // then it is any object
}
