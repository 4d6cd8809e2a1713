#include "inference/chat/answer.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace parley::inference;
using chat::answer;
using parley::grammar::json_grammar;

namespace {

const tokenizer& words() {
  static const auto t = tokenizer::open("models/nano");
  return t;
}

const chat::answer_ids& ids() {
  static const auto of = chat::answer_ids::of(words());
  return of;
}

submit_turn asked() {
  submit_turn turn{};
  turn.do_sample = false;
  turn.length_penalty = 1;
  return turn;
}

submit_turn with_tools() {
  auto turn = asked();
  turn.tools.emplace_back();
  return turn;
}

std::shared_ptr<const json_grammar> any_call() {
  const std::vector<json_grammar::form> forms{
      {"<tool_call>\n{\"name\": \"f\", \"arguments\": ", "", "}\n</tool_call>"}};
  return std::make_shared<const json_grammar>(forms);
}

/// An answer, what its tokens are drawn with, and what a client has been told.
struct told_answer {
  random_stream chance{1, substream::text};
  llm::sampling_scratch scratch;
  answer of;
  std::string text;
  std::vector<parley::conversation::call_piece> calls;
  bool over = false, speech = false;

  explicit told_answer(submit_turn turn, answer::opening how = {})
      : of(std::make_shared<const submit_turn>(std::move(turn)), {words(), ids(), {}}, std::move(how)) {}

  /// A row that likes these tokens, the first one most.
  static std::vector<float> row(std::initializer_list<token_id> liked) {
    std::vector<float> logits(static_cast<std::size_t>(words().size()));
    auto worth = 60.0F;
    for (const auto id : liked) logits[static_cast<std::size_t>(id)] = std::exchange(worth, worth - 20);
    return logits;
  }

  token_id draw(std::initializer_list<token_id> liked) {
    auto logits = row(liked);
    return of.draw(logits, {chance, scratch, 1000});
  }

  void take(token_id token, bool full = false) {
    auto news = of.take(token, full);
    text += news.text;
    for (auto& piece : news.calls) calls.push_back(std::move(piece));
    over = news.over;
    speech = speech || news.begins_speech;
  }

  /// The model says this, token by token, until the answer is over.
  void say(std::string_view what) {
    for (const auto id : words().encode(what))
      if (!over) take(draw({id}));
  }
};

} // namespace

TEST_CASE("an answer tells its text, and why it is over") {
  const auto end = ids().terminators.at(1);
  told_answer whole(asked());
  CHECK(whole.of.begins_as_speech());
  whole.say("you can see the café");
  CHECK(whole.text == "you can see the café");
  CHECK_FALSE(whole.over);
  whole.take(whole.draw({end}));
  CHECK(whole.over);
  CHECK(whole.of.reason() == finish_reason::turn_end);
  CHECK(whole.of.text() == "you can see the café");
  CHECK(whole.of.drawn().size() == whole.of.tokens().size() + 1);

  auto few = asked();
  few.max_new_tokens = 3;
  told_answer limited(few);
  limited.say("one two three four five six");
  CHECK(limited.of.tokens().size() == 3);
  CHECK(limited.of.reason() == finish_reason::length);

  told_answer full(asked());
  full.take(words().encode("one").front(), true);
  CHECK(full.over);
  CHECK(full.of.reason() == finish_reason::length);
}

TEST_CASE("an answer stops before the first of its stops, and what may belong to one waits") {
  auto turn = asked();
  turn.stop = {"three four", "zzz"};
  told_answer stopped(turn);
  stopped.say("one two three");
  CHECK(stopped.text == "one two ");
  CHECK(stopped.of.certain() < stopped.of.tokens().size());
  stopped.say(" four five");
  CHECK(stopped.over);
  CHECK(stopped.text == "one two ");
  CHECK(stopped.of.reason() == finish_reason::turn_end);

  told_answer other(turn);
  other.say("one two three");
  other.say(" five");
  other.take(ids().terminators.at(1));
  CHECK(other.text == "one two three five");
  CHECK(other.of.certain() == other.of.tokens().size());
}

TEST_CASE("calls are told apart from the text, in pieces if these are wanted") {
  constexpr auto call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";
  for (const auto pieces : {false, true}) {
    auto turn = with_tools();
    turn.call_pieces = pieces;
    told_answer calling(turn, {false, any_call()});
    calling.say(std::string("well ") + call);
    calling.take(ids().terminators.at(1));
    CHECK(calling.text == "well");
    std::string name, arguments;
    for (const auto& piece : calling.calls) {
      name += piece.name;
      arguments += piece.arguments;
    }
    CHECK(name == (pieces ? "f" : ""));
    CHECK(arguments == (pieces ? "{\"a\":1}" : ""));
    const auto calls = calling.of.take_calls();
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].name == "f");
  }
}

TEST_CASE("the marks of calls are drawn where a call may be, and what cannot be said is not where it is spoken") {
  const auto mark = words().find("<tool_call>");
  REQUIRE(mark);
  const auto word = words().encode("one").front(), sign = words().encode("*").front();
  CHECK(told_answer(asked()).draw({*mark, word}) == word);
  CHECK(told_answer(with_tools()).draw({*mark, word}) == *mark);
  told_answer spoken(with_tools());
  CHECK(spoken.draw({sign, word}) == sign);
  spoken.of.speak();
  CHECK(spoken.draw({*mark, word}) == word);
  REQUIRE(std::ranges::count(ids().unspeakable, sign) > 0);
  CHECK(spoken.draw({sign, word}) == word);
}

TEST_CASE("an answer with a schema obeys it and ends with it") {
  auto turn = asked();
  turn.answer_schema = R"({"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]})";
  const std::vector<json_grammar::form> forms{{"", turn.answer_schema, ""}};
  told_answer json(turn, {false, std::make_shared<const json_grammar>(forms)});
  CHECK_FALSE(json.of.begins_as_speech());
  const auto word = words().encode("one").front();
  const auto brace = words().encode("{").front();
  CHECK(json.draw({word, brace}) == brace);
  json.say(R"({"n": 7})");
  CHECK(json.over);
  CHECK(json.text == R"({"n": 7})");
  CHECK(json.of.reason() == finish_reason::turn_end);
}

TEST_CASE("an undecided answer's first token says whether it is a call or speech") {
  const auto mark = *words().find("<tool_call>");
  const auto speech = words().id("<|tts_bos|>"), word = words().encode("one").front();
  told_answer calls(with_tools(), {true, nullptr});
  CHECK_FALSE(calls.of.begins_as_speech());
  CHECK(calls.draw({mark, word}) == mark);
  told_answer speaks(with_tools(), {true, nullptr});
  const auto first = speaks.draw({word, mark});
  CHECK(first == speech);
  speaks.take(first);
  CHECK(speaks.speech);
  CHECK(speaks.of.tokens().empty());
  speaks.say("one two");
  CHECK(speaks.text == "one two");
}

TEST_CASE("a replayed answer draws what was drawn, and tells only what was not told") {
  const auto text = words().encode("one two three four");
  REQUIRE(text.size() >= 3);
  auto turn = asked();
  turn.do_sample = true;
  turn.temperature = 1.0;
  turn_choices before;
  before.sampled.assign(text.begin(), text.begin() + 2);
  before.text_bytes = words().decode(std::span(text).first(1)).size();
  turn.replay = std::make_shared<const turn_choices>(before);
  told_answer again(turn), fresh(asked());
  const auto other = words().encode("zebra").front();
  for (const std::size_t i : {0, 1}) {
    const auto token = again.draw({other});
    CHECK(token == text[i]);
    again.take(token);
  }
  CHECK(again.text == words().decode(std::span(text).first(2)).substr(before.text_bytes));
  CHECK(again.of.take_drawn().empty());
  random_stream twice(1, substream::text);
  twice.next();
  twice.next();
  CHECK(again.chance.where() == twice.where()); // the numbers are used up all the same
  again.take(again.draw({other}));
  CHECK(again.of.take_drawn() == std::vector<std::int64_t>{other});
  CHECK(again.of.take_drawn().empty());
}

TEST_CASE("tokens of the text are scored once it is certain, those of a call are not") {
  auto turn = with_tools();
  turn.scored = 2;
  turn.stop = {"four"};
  told_answer scored(turn, {false, any_call()});
  scored.say("one two");
  const auto scores = scored.of.take_scores();
  CHECK(scores.size() == scored.of.certain());
  REQUIRE_FALSE(scores.empty());
  CHECK(scores[0].likeliest.size() == 2);
  CHECK(scores[0].chosen.logprob > -1e-3);
  CHECK(scored.of.take_scores().empty());
  scored.say("<tool_call>\n{\"name\": \"f\"");
  scored.take(ids().terminators.at(1));
  CHECK(scored.of.take_scores().size() + scores.size() == words().encode("one two").size());
}
