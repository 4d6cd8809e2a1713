#include "grammar/pattern.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace parley::grammar;

namespace {

automaton automaton_of(std::string_view expression) {
  std::int64_t work = 10'000'000;
  const auto read = read_pattern(expression, work);
  INFO(expression << ": " << read.objection);
  REQUIRE(read.strings);
  return automaton(*read.strings, work);
}

std::string objection_to(std::string_view expression) {
  std::int64_t work = 3'000'000;
  return read_pattern(expression, work).objection;
}

} // namespace

TEST_CASE("an expression is found anywhere in a string, as ECMA-262 has it") {
  struct row {
    const char* expression;
    std::vector<std::string> has, lacks;
  };
  const row rows[] = {
      {"b", {"b", "abc"}, {"", "ac"}},
      {"^b", {"b", "ba"}, {"ab"}},
      {"b$", {"ab"}, {"ba", "b\n"}},
      {"^$", {""}, {"a"}},
      {"^a|b$", {"ax", "xb"}, {"xax"}},
      {"^(?:ab|c)+d?$", {"ab", "cabd", "c"}, {"", "d", "abdd"}},
      {"^a{2,3}$", {"aa", "aaa"}, {"a", "aaaa"}},
      {"^a{2,}$", {"aa", "aaaaa"}, {"a"}},
      {"^a{,2}$", {"a{,2}"}, {"a"}},
      {"^a*?b+?$", {"b", "aab"}, {"a"}},
      {"^.$", {"x", "é", "語", "😀"}, {"", "\n", "\r", "xx", "\xE2\x80\xA8"}},
      {"^[^a-c]$", {"d", "\n", "語"}, {"a", "c", "dd"}},
      {"^[\\]\\-^]$", {"]", "-", "^"}, {"\\"}},
      {"^[a\\d-]$", {"a", "7", "-"}, {"b"}},
      {"^[α-ω]+$", {"λ", "αω"}, {"a", "Ω"}},
      {"^\\w\\W\\d\\D\\s\\S$", {"a-1b c", "_é0é\tx"}, {"a-1b  "}},
      {"^\\u00e9\\x41\\u{1F600}\\ud83d\\ude00\\cJ$", {"éA😀😀\n"}, {"éA😀😀"}},
      {"^(?<year>[0-9]{4})$", {"2026"}, {"26"}},
      {"^a^", {}, {"a", "", "aa"}},
      {"[]", {}, {"", "a"}},
      {"^[^]$", {"a", "\n"}, {""}},
      {"^\\$\\.\\/$", {"$./"}, {"$a/"}},
  };
  for (const auto& each : rows) {
    INFO(each.expression);
    const auto strings = automaton_of(each.expression);
    for (const auto& text : each.has) {
      INFO(text);
      CHECK(strings.holds(text));
    }
    for (const auto& text : each.lacks) {
      INFO(text);
      CHECK_FALSE(strings.holds(text));
    }
  }
}

TEST_CASE("what is not regular, or not an expression, is refused by name") {
  CHECK(objection_to("(?=a)") == "has lookaround or flags, which are not followed");
  CHECK(objection_to("(?<!a)b") == "has lookaround or flags, which are not followed");
  CHECK(objection_to("(a)\\1") == "has back references, which are not followed");
  CHECK(objection_to("\\bword\\b") == "has word boundaries, which are not followed");
  CHECK(objection_to("\\p{L}") == "has Unicode properties, which are not followed");
  CHECK(objection_to("(a") == "has a ( without a )");
  CHECK(objection_to("a)") == "has a ) without a (");
  CHECK(objection_to("*a") == "has a quantifier of nothing");
  CHECK(objection_to("a**") == "has a quantifier of a quantifier");
  CHECK(objection_to("[b-a]") == "has a range out of order");
  CHECK(objection_to("[a") == "ends too early");
  CHECK(objection_to("a{1001}") == "repeats something more than 1000 times");
  CHECK(objection_to("\\ud800") == "has half a character");
}

TEST_CASE("expressions that would take gigabytes are refused in little time") {
  for (const auto* expression :
       {"((((a{0,90}){0,90}){0,90}){0,90}){0,90}", "(a|b)*a(a|b){20}", "(.*a.*b.*c.*d){30}x(.{900})"}) {
    INFO(expression);
    std::int64_t work = 3'000'000;
    const auto read = read_pattern(expression, work);
    CHECK_FALSE(read.strings);
    CHECK(read.objection == "has too many states");
    CHECK(work > -1'000'000);
  }
}

TEST_CASE("what ends a string is the shortest way, in bytes of JSON") {
  CHECK(automaton_of("^(abc|ab\\n|xyzw)$").rest_bytes(0) == 3);
  std::string text;
  automaton_of("^(\\n\\n\\n|abcde)$").append_rest(0, text);
  CHECK(text == "abcde"); // \n takes two bytes
  CHECK(automaton_of("^a\\u0001$").rest_bytes(0) == 7);
}
