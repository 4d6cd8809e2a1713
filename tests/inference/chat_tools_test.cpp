#include "inference/chat/call_reader.hpp"
#include "inference/chat/constraint.hpp"
#include "inference/chat/template.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <random>

using namespace parley::inference;
using namespace parley::inference::chat;
using parley::grammar::json_grammar;
using parley::grammar::json_state;

namespace {

const tokenizer& nano_words() {
  static const auto t = tokenizer::open("models/nano");
  return t;
}

role role_named(const std::string& name) {
  return name == "system" ? role::system : name == "user" ? role::user : name == "tool" ? role::tool : role::assistant;
}

std::shared_ptr<const json_grammar> weather_call() {
  const std::vector<json_grammar::form> forms{
      {"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": ",
       R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]})",
       "}\n</tool_call>"}};
  return std::make_shared<const json_grammar>(forms);
}

/// Answers drawn at random within the grammar, in at most that many tokens.
std::string random_answer(std::int64_t most, unsigned seed, bool short_rows) {
  std::mt19937 random(seed);
  std::normal_distribution<float> logit;
  constraint within(weather_call(), nano_words());
  std::vector<token_id> drawn;
  std::vector<float> row(static_cast<std::size_t>(nano_words().size()));
  while (!within.done() && std::ssize(drawn) < most) {
    for (auto& l : row) l = logit(random);
    const auto left = most - std::ssize(drawn);
    llm::short_row some{{}, {}, -5, 1, 0};
    for (auto id = token_id{0}; short_rows && id < nano_words().size(); id += 3) {
      some.ids.push_back(id);
      some.logits.push_back(row[static_cast<std::size_t>(id)]);
    }
    token_id best;
    if (short_rows && within.restrict(some, left)) {
      best = some.ids[static_cast<std::size_t>(std::ranges::max_element(some.logits) - some.logits.begin())];
    } else {
      within.restrict(row, left);
      best = std::ranges::max_element(row) - row.begin();
    }
    REQUIRE(within.take_token(best));
    drawn.push_back(best);
  }
  CHECK(within.done());
  return nano_words().decode(drawn);
}

std::string read_in_pieces(call_reader& reader, std::string_view text, std::size_t size) {
  std::string out;
  for (; !text.empty(); text.remove_prefix(std::min(size, text.size()))) out += reader.push(text.substr(0, size));
  return out + reader.finish();
}

} // namespace

TEST_CASE("conversations with tools are rendered as by the model's own template") {
  std::ifstream file("tests/data/goldens/tools/prompts.json");
  const auto cases = nlohmann::json::parse(file);
  REQUIRE(cases.size() >= 10);
  for (const auto& each : cases) {
    INFO(each["name"]);
    std::vector<template_message> messages;
    for (const auto& m : each["messages"]) {
      auto& made = messages.emplace_back(template_message{role_named(m["role"]), {}});
      made.content.quote(m["content"].get<std::string>());
      if (m.contains("tool_calls"))
        for (const auto& call : m["tool_calls"])
          made.calls.push_back({"", call["function"]["name"], call["function"]["arguments"]});
    }
    std::vector<parley::conversation::tool> tools;
    for (const auto& signature : each["tools"]) tools.push_back({"", signature, ""});
    CHECK(apply_template(messages, {}, tools).text == each["prompt"]);
  }
}

TEST_CASE("calls are separated from the text of an answer, whatever its pieces") {
  const std::string text = "Let me look. < \n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"</tool_call>\"}}\n"
                           "</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";
  for (auto size : {1u, 2u, 7u, 1000u}) {
    call_reader reader;
    CHECK(read_in_pieces(reader, text, size) == "Let me look. <");
    REQUIRE(reader.calls().size() == 2);
    CHECK(reader.calls()[0].name == "f");
    CHECK(reader.calls()[0].arguments == R"({"a":"</tool_call>"})");
    CHECK(reader.calls()[1].name == "g");
  }
}

TEST_CASE("an answer without calls stays as it is") {
  for (const std::string text : {"", "a <tool_ b", " \n x \n", "<tool_cal"}) {
    call_reader reader;
    CHECK(read_in_pieces(reader, text, 1) == text);
    CHECK(reader.calls().empty());
  }
}

TEST_CASE("arguments that are no JSON are passed on") {
  call_reader reader;
  CHECK(reader.push("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": ").empty());
  CHECK(reader.in_call());
  CHECK(reader.finish().empty());
  REQUIRE(reader.calls().size() == 1);
  CHECK(reader.calls()[0].arguments == "{\"a\":");
}

TEST_CASE("a call comes in pieces once its name is known, whatever the pieces of its text") {
  const std::string text =
      "I see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a b\": [1, \"x \\\" y\"]}}\n</tool_call>\n"
      "<tool_call>\n{\"arguments\": {\"b\": 2}, \"name\": \"g\"}\n</tool_call>"
      "<tool_call>{\"name\":\"h\",\"arguments\":\"{}\"}</tool_call>";
  for (auto size : {1u, 2u, 7u, 1000u}) {
    CAPTURE(size);
    call_reader reader;
    std::vector<parley::conversation::call_piece> pieces;
    const auto take = [&] {
      for (auto& piece : reader.take_pieces()) pieces.push_back(std::move(piece));
    };
    for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(std::min<std::size_t>(size, rest.size()))) {
      reader.push(rest.substr(0, size));
      take();
    }
    reader.finish();
    take();
    REQUIRE(reader.calls().size() == 3);
    std::vector<parley::conversation::tool_call> built;
    for (const auto& piece : pieces) {
      REQUIRE(piece.number < 3);
      CHECK((piece.number == built.size()) == !piece.name.empty()); // the name comes first, and once
      if (piece.number == built.size()) built.push_back({"", piece.name, ""});
      REQUIRE(piece.number == built.size() - 1);
      built.back().arguments += piece.arguments;
    }
    REQUIRE(built.size() == 3);
    for (auto i = 0u; i < 3; ++i) {
      CHECK(built[i].name == reader.calls()[i].name);
      CHECK(built[i].arguments == reader.calls()[i].arguments);
    }
    CHECK(built[0].arguments == R"({"a b":[1,"x \" y"]})");
    CHECK(built[1].arguments == R"({"b":2})");
    CHECK(built[2].arguments == "{}");
    if (size == 1) CHECK(std::ranges::count(pieces, 0u, &parley::conversation::call_piece::number) > 15);
    CHECK(std::ranges::count(pieces, 1u, &parley::conversation::call_piece::number) == 1); // not in the usual form
  }
}

TEST_CASE("a call that is cut off ends with the pieces that it had") {
  for (const std::string body : {R"({"name": "f", "arguments": {"a": "x)", R"({"name": "f", "arguments": {)", R"({"na)",
                                 R"({"name": "f)", R"({"name": "f", "arguments": )"}) {
    CAPTURE(body);
    call_reader reader;
    reader.push("<tool_call>" + body);
    auto pieces = reader.take_pieces();
    reader.finish();
    for (auto& piece : reader.take_pieces()) pieces.push_back(std::move(piece));
    REQUIRE(pieces.size() == reader.calls().size());
    if (!pieces.empty()) CHECK(pieces[0].arguments == reader.calls()[0].arguments);
  }
}

TEST_CASE("with tools and a format, an answer is a call or obeys the format") {
  const std::vector<json_grammar::form> forms{
      {"", R"({"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"]})", ""},
      {"<tool_call>\n{\"name\": \"f\", \"arguments\": ", "", "}\n</tool_call>"},
      {"<tool_call>\n{\"name\": \"g\", \"arguments\": ", "", "}\n</tool_call>"}};
  const json_grammar grammar(forms);
  const auto fits = [&](std::string_view text) {
    json_state state(grammar);
    return state.feed(text) && state.done();
  };
  CHECK(fits(R"({"a":true})"));
  CHECK_FALSE(fits(R"({"b":true})"));
  CHECK(fits("<tool_call>\n{\"name\": \"g\", \"arguments\": {\"x\":1}}\n</tool_call>"));
  CHECK_FALSE(fits("<tool_call>\n{\"name\": \"h\", \"arguments\": {}}\n</tool_call>"));
  CHECK_FALSE(fits("true"));
  json_state state(grammar);
  CHECK(fits(state.completion()));
  REQUIRE(state.feed("<tool_call>\n{\"name\": \"g"));
  CHECK(fits("<tool_call>\n{\"name\": \"g" + state.completion()));
}

TEST_CASE("an answer within a grammar is whole, however few tokens it may have") {
  const auto shortest =
      std::string("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"\"}}\n</tool_call>");
  for (auto most : {static_cast<std::int64_t>(shortest.size()), std::int64_t{90}, std::int64_t{120}, std::int64_t{400}})
    for (auto seed = 1u; seed <= 3; ++seed) {
      call_reader reader;
      CHECK(reader.push(random_answer(most, seed, seed % 2 == 0)).empty());
      CHECK_FALSE(reader.in_call());
      REQUIRE(reader.calls().size() == 1);
      CHECK(reader.calls()[0].name == "get_weather");
      CHECK(nlohmann::json::parse(reader.calls()[0].arguments).at("city").is_string());
    }
}

TEST_CASE("control tokens are never within a grammar") {
  constraint within(weather_call(), nano_words());
  REQUIRE(within.take("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \""));
  std::vector<float> row(static_cast<std::size_t>(nano_words().size()), -1);
  row[static_cast<std::size_t>(nano_words().id("<|im_end|>"))] = 50;
  within.restrict(row, 1000);
  CHECK(row[static_cast<std::size_t>(nano_words().id("<|im_end|>"))] == -std::numeric_limits<float>::infinity());
}

namespace {

/// As it is defined: a call ends at the first mark with whole JSON before it.
std::size_t end_of_call(std::string_view body) {
  auto end = body.find(call_end);
  while (end != std::string_view::npos && !nlohmann::json::accept(body.substr(0, end)))
    end = body.find(call_end, end + 1);
  return end;
}

} // namespace

TEST_CASE("a call ends at the first mark that has whole JSON before it, whatever is written") {
  std::mt19937 random(3);
  const std::vector<std::string> parts{"{",
                                       "}",
                                       "[",
                                       "]",
                                       "\"",
                                       "\\",
                                       "<",
                                       "</",
                                       "</tool_call>",
                                       "</tool_call>",
                                       "1",
                                       ":",
                                       ",",
                                       " ",
                                       "\"a\"",
                                       "true",
                                       "\"name\"",
                                       "{\"name\": \"f\", \"arguments\": {",
                                       "}}",
                                       "\n"};
  auto ended = 0, endless = 0;
  for (auto round = 0; round < 4000; ++round) {
    std::string body = round % 2 ? "{\"name\": \"f\", \"arguments\": {\"a\": \"" : "";
    for (auto i = random() % (round % 2 ? 4 : 12); i > 0; --i) body += parts[random() % parts.size()];
    if (round % 2) body += "\"}}</tool_call>";
    CAPTURE(body);
    const auto end = end_of_call(body);
    call_reader reader;
    const auto size = 1 + random() % 5;
    const auto text = "<tool_call>" + body;
    std::size_t taken = 0;
    bool open = true;
    for (std::string_view rest = text; !rest.empty() && open;
         rest.remove_prefix(std::min<std::size_t>(size, rest.size()))) {
      reader.push(rest.substr(0, size));
      taken += std::min<std::size_t>(size, rest.size());
      open = reader.in_call() || taken < call_begin.size();
    }
    CHECK(open == (end == std::string_view::npos));
    ++(open ? endless : ended);
    if (!open) CHECK(taken - call_begin.size() < end + call_end.size() + size);
  }
  CHECK(ended > 300);
  CHECK(endless > 300);
}

TEST_CASE("a call of a hundred thousand marks is read once") {
  // Looking at what was read again for each mark would take hours.
  constexpr auto marks = 100'000;
  call_reader reader;
  reader.push("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"");
  for (auto i = 0; i < marks; ++i) reader.push("</tool_call>");
  CHECK(reader.in_call());
  reader.push("\"}}</tool_call>");
  REQUIRE(reader.calls().size() == 1);
  CHECK(reader.calls()[0].arguments.size() == marks * call_end.size() + std::string_view(R"({"a":""})").size());
  call_reader lost; // no JSON, and it will not become any
  lost.push("<tool_call>{\"a\": <");
  for (auto i = 0; i < marks; ++i) lost.push("</tool_call>");
  CHECK(lost.in_call());
}

TEST_CASE("an answer for which there is no room goes the shortest way, and one with room is free") {
  const std::vector<json_grammar::form> forms{
      {"", R"({"type":"object","properties":{"a":{"type":"string","minLength":3000}},"required":["a"]})", ""}};
  const auto rules = std::make_shared<const json_grammar>(forms);
  std::vector<float> row(static_cast<std::size_t>(nano_words().size()));
  const auto free_tokens = [&](constraint& within, std::int64_t left) {
    std::ranges::fill(row, 0.f);
    within.restrict(row, left);
    return std::ranges::count_if(row, [](float l) { return std::isfinite(l); });
  };
  constraint without_room(rules, nano_words()), with_room(rules, nano_words());
  for (auto left = std::int64_t{200}; left > 0; --left) {
    CHECK(free_tokens(without_room, left) == 1);
    REQUIRE(without_room.take_token(std::ranges::max_element(row) - row.begin()));
  }
  REQUIRE(with_room.take(R"({"a":"b)"));
  CHECK(free_tokens(with_room, 4000) > 1000);
  CHECK(free_tokens(with_room, 3100) > 100);
  CHECK(free_tokens(with_room, 2900) == 1);
}
