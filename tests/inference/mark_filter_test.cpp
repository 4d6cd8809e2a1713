#include "inference/decoding/mark_filter.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <string_view>

using namespace parley::inference::chat;

namespace {

std::string filtered(std::string_view text, std::size_t size) {
  mark_filter filter;
  std::string out;
  for (; !text.empty(); text.remove_prefix(std::min(size, text.size()))) out += filter.push(text.substr(0, size));
  return out + filter.finish();
}

} // namespace

TEST_CASE("no mark of a call reaches a reader, whatever the pieces of the text") {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"Hello.", "Hello."},
      {"Hello.\n</tool_call>", "Hello.\n"},
      {"<tool_call>\n{\"name\": \"f\"}\n</tool_call>", "\n{\"name\": \"f\"}\n"},
      {"{\"a\": \"x<tool_call>y</tool_response>\"}", "{\"a\": \"xy\"}"},
      {"<tool_<tool_call>call>!", "!"},
      {"</tool_<tool_response></tool_call>call>!", "!"},
      {"1 < 2 <tool <tool_call <<", "1 < 2 <tool <tool_call <<"},
      {"<tool_call", "<tool_call"},
      {"", ""},
  };
  for (const auto& [text, right] : cases) {
    for (auto size : {1u, 2u, 5u, 1000u}) CHECK(filtered(text, size) == right);
    CHECK(without_marks(text) == right);
  }
}

TEST_CASE("what can be no part of a mark is passed on at once") {
  mark_filter filter;
  CHECK(filter.push("a <") == "a ");
  CHECK(filter.push("b") == "<b");
  CHECK(filter.push("</tool_cal") == "");
  CHECK(filter.push("m") == "</tool_calm");
}
