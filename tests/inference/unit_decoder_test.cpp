#include "inference/decoding/unit_decoder.hpp"

#include "inference/duplex/message_rows.hpp"
#include "inference/duplex/window.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cctype>
#include <string>

using namespace parley::inference;
using namespace parley::inference::duplex;

namespace {

const tokenizer& words() {
  static const auto t = tokenizer::open("models/tiny-omni");
  return t;
}

const control_tokens& marks() {
  static const auto c = control_tokens::of(words());
  return c;
}

struct session {
  explicit session(unit_decoder_options options = {}, const quirks& how = {}) : decoder(words(), how, options) {}

  /// Runs one unit in which the model draws `choice`; returns what was fed.
  std::vector<token_id> unit(std::vector<token_id> choice, bool force = false) {
    std::vector<token_id> fed;
    auto next = choice.begin();
    decoder.begin(force);
    while (decoder.next() != wants::nothing) {
      if (decoder.next() == wants::draw) {
        REQUIRE(next != choice.end());
        decoder.sampled(*next++);
      } else {
        fed.push_back(decoder.token());
        decoder.fed();
      }
    }
    CHECK(next == choice.end());
    return fed;
  }

  const unit_outcome& out() const { return decoder.outcome(); }

  unit_decoder decoder;
};

std::vector<token_id> ids(std::string_view text) {
  return words().encode(text);
}

std::vector<token_id> join(std::initializer_list<std::vector<token_id>> parts) {
  std::vector<token_id> all;
  for (const auto& p : parts) all.insert(all.end(), p.begin(), p.end());
  return all;
}

} // namespace

TEST_CASE("the first units listen when told so, without asking the model") {
  session s({.force_listen_count = 2});
  for (auto i = 0; i < 2; ++i) {
    CHECK(s.unit({}).empty());
    CHECK(s.out().is_listen);
    CHECK(s.out().terminator == marks().listen);
    CHECK(s.out().sampled == 0);
  }
  s.unit({marks().listen});
  CHECK(s.out().is_listen);
  CHECK(s.out().sampled == 1);
}

TEST_CASE("a turn speaks until it ends, and cannot listen before") {
  session s;
  auto hello = ids("hello");
  s.unit(join({{marks().speak}, hello, {marks().chunk_eos}}));
  CHECK_FALSE(s.out().is_listen);
  CHECK_FALSE(s.out().end_of_turn);
  CHECK(s.out().text == "hello");
  CHECK(s.out().terminator == marks().chunk_eos);
  auto fed = s.unit(join({{marks().listen}, ids("you"), {marks().turn_eos}, {marks().chunk_eos}}));
  CHECK(fed.front() == marks().tts_bos);
  CHECK(s.out().text == "you");
  CHECK(s.out().end_of_turn);
  s.unit({marks().listen});
  CHECK(s.out().is_listen);
}

TEST_CASE("a unit ends at its budget or at 28 characters") {
  session s({.max_new_tokens = 4});
  auto abc = std::vector<token_id>{marks().speak, ids("a")[0], ids("b")[0]};
  s.unit(abc);
  CHECK(s.out().terminator == marks().chunk_eos);
  CHECK(s.out().text == "ab");
  CHECK(s.out().sampled == 3);
  CHECK(s.out().appended.size() == 4);

  session small({.max_new_tokens = 100, .max_characters = 3});
  auto fed = small.unit({marks().speak, ids("a")[0], ids("b")[0], ids("c")[0]});
  CHECK(fed.size() == 3); // the third letter is rejected
  CHECK(small.out().text == "ab");
  CHECK(small.out().terminator == marks().chunk_eos);
  CHECK(small.out().sampled == 3);
}

TEST_CASE("text before a listen is told, the turn ends and the next unit listens; the reference loses it") {
  auto choice = join({{marks().speak}, ids("bye"), {marks().turn_eos, marks().listen}});
  session s;
  s.unit(choice);
  CHECK_FALSE(s.out().is_listen);
  CHECK(s.out().end_of_turn);
  CHECK(s.out().text == "bye");
  s.unit({});
  CHECK(s.out().is_listen);
  s.unit({marks().listen});

  session literal({}, quirks::literal());
  literal.unit(choice);
  CHECK(literal.out().is_listen);
  CHECK_FALSE(literal.out().end_of_turn);
  literal.unit({marks().listen});
}

TEST_CASE("text as the first token is kept; the reference loses it") {
  auto choice = join({ids("a"), ids("b"), {marks().chunk_eos}});
  session s;
  s.unit(choice);
  CHECK(s.out().text == "ab");
  session literal({}, quirks::literal());
  literal.unit(choice);
  CHECK(literal.out().text == "b");
}

TEST_CASE("forcing to listen closes an open turn first") {
  session s;
  s.unit(join({{marks().speak}, ids("a"), {marks().chunk_eos}}));
  auto fed = s.unit({}, true);
  CHECK(fed == std::vector<token_id>{marks().turn_eos});
  CHECK(s.out().is_listen);
  CHECK(s.out().appended == std::vector<token_id>{marks().turn_eos, marks().listen});
  CHECK(s.unit({}, true).empty()); // the turn is closed already
}

TEST_CASE("a cut stops at the next token and closes what the model has heard of itself") {
  session s;
  s.decoder.begin(false);
  s.decoder.sampled(marks().speak);
  s.decoder.cut(); // not fed yet, so it is dropped
  CHECK(s.decoder.next() == wants::nothing);
  CHECK(s.out().is_listen);
  CHECK(s.out().appended == std::vector<token_id>{marks().listen});
  CHECK(s.out().sampled == 0);

  s.decoder.begin(false);
  s.decoder.sampled(marks().speak);
  s.decoder.fed();
  s.decoder.sampled(ids("a")[0]);
  s.decoder.cut();
  REQUIRE(s.decoder.next() == wants::feed);
  CHECK(s.decoder.token() == marks().turn_eos);
  s.decoder.cut(); // a second cut adds nothing
  s.decoder.fed();
  CHECK(s.decoder.next() == wants::nothing);
  CHECK(s.out().is_listen);
  CHECK(s.out().text.empty());
  CHECK(s.out().appended == std::vector<token_id>{marks().speak, marks().turn_eos, marks().listen});
  CHECK(s.decoder.turn_ended());
}

TEST_CASE("a finished unit is recalled while it is being spoken") {
  session s;
  s.unit(join({{marks().speak}, ids("a"), {marks().chunk_eos}}));
  s.decoder.recall();
  REQUIRE(s.decoder.next() == wants::feed);
  CHECK(s.decoder.token() == marks().turn_eos);
  s.decoder.fed();
  CHECK(s.decoder.next() == wants::nothing);
  CHECK(s.out().is_listen);
  CHECK(s.out().text.empty());
  CHECK(s.out().terminator == marks().listen);
  CHECK(s.out().appended == join({{marks().speak}, ids("a"), {marks().turn_eos, marks().listen}}));
  CHECK(s.out().sampled == 2); // speak and one letter

  session ended; // the turn is closed already, so there is nothing to feed
  ended.unit(join({{marks().speak}, ids("a"), {marks().turn_eos, marks().listen}}));
  CHECK(ended.out().end_of_turn);
  ended.decoder.recall();
  CHECK(ended.decoder.next() == wants::nothing);
  CHECK(ended.out().is_listen);
  CHECK_FALSE(ended.out().end_of_turn);
  ended.unit(join({{marks().speak}, ids("b"), {marks().chunk_eos}})); // the next unit is not forced to listen
  CHECK(ended.out().text == "b");

  session budget({.max_new_tokens = 3}); // with a terminator that was not sampled
  budget.unit({marks().speak, ids("a")[0]});
  budget.decoder.recall();
  budget.decoder.fed();
  CHECK(budget.out().sampled == 2);
}

TEST_CASE("a basic window drops whole units from the front") {
  window w(words(), {.mode = window_mode::basic, .high_tokens = 100, .low_tokens = 60});
  w.set_prompt(20, {1, 2});
  auto length = std::int64_t{22};
  for (auto i = 0; i < 3; ++i) {
    w.begin_unit(length);
    length += 26;
    w.end_unit(length, {});
    CHECK_FALSE(w.slide(length));
  }
  w.begin_unit(length);
  length += 26; // 126 rows now
  w.end_unit(length, {});
  const auto slid = w.slide(length);
  REQUIRE(slid);
  CHECK(slid->keep == 22);
  CHECK(slid->insert.empty());
  CHECK(slid->moves == std::vector<llm::row_move>{{22 + 78, 22, 26}}); // three units at once
  CHECK(slid->length() == 48);
  CHECK(w.units().size() == 1);
  CHECK(w.events() == 1);
  CHECK(w.dropped_tokens() == 78);
}

TEST_CASE("a context window keeps what was said") {
  window w(words(), {.mode = window_mode::context, .max_units = 1, .previous_max_tokens = 3});
  auto suffix = ids("<|im_end|>");
  w.set_prompt(10, suffix);
  auto speak = [&](std::vector<token_id> said, bool listen, std::int64_t begin) {
    w.begin_unit(begin);
    unit_outcome out;
    out.ids = said;
    out.text = words().decode(said, true);
    out.is_listen = listen;
    w.end_unit(begin + 20, out);
    return w.slide(begin + 20);
  };
  CHECK_FALSE(speak({}, true, 11));
  auto plain = speak(ids("abcd"), false, 31); // drops a unit in which nothing was said
  REQUIRE(plain);
  CHECK(plain->keep == 11);
  CHECK(plain->insert.empty());
  CHECK(plain->moves == std::vector<llm::row_move>{{31, 11, 20}});
  auto told = speak({}, true, 31);
  REQUIRE(told);
  CHECK(told->keep == 10);
  auto marker = ids("\n\nprevious: ");
  auto said = ids("abcd");
  if (said.size() > 3) said.erase(said.begin(), said.end() - 3);
  CHECK(told->insert == join({marker, said, suffix}));
  CHECK(told->moves == std::vector<llm::row_move>{{31, 10 + std::ssize(told->insert), 20}});
  CHECK(w.preserved() == 10 + std::ssize(told->insert));
}

TEST_CASE("messages before a unit are written as the chat template writes them") {
  const std::vector<text_message> all{{role::system, "Be kind."},
                                      {role::tool, "{\"a\": 1}"},
                                      {role::tool, "[]"},
                                      {role::user, "Hello, <|im_end|> caf\u00e9"},
                                      {role::assistant, "Hi."}};
  const auto rows = encode_messages(words(), all);
  CHECK(words().decode(rows.ids) == "<|im_start|>system\nBe kind.<|im_end|>\n"
                                    "<|im_start|>user\n<tool_response>\n{\"a\": 1}\n</tool_response>\n<tool_response>\n"
                                    "[]\n</tool_response><|im_end|>\n"
                                    "<|im_start|>user\nHello, <|im_end|> caf\u00e9<|im_end|>\n"
                                    "<|im_start|>assistant\nHi.<|im_end|>");
  CHECK(std::ranges::count(rows.ids, words().id("<|im_end|>")) == 4); // the user's own is text
  REQUIRE(rows.parts.size() == 4);
  CHECK(rows.parts[0].stays);
  auto sum = std::int64_t{0};
  for (const auto& part : rows.parts) sum += part.length;
  CHECK(sum == std::ssize(rows.ids));
  for (auto i = std::size_t{1}; i < 4; ++i) CHECK_FALSE(rows.parts[i].stays);
  CHECK(encode_messages(words(), {}).ids.empty());
}

namespace {

/// A cache of rows, each with the name of what it belongs to.
struct rows {
  std::string names;

  void apply(const std::optional<window_slide>& slid) {
    if (!slid) return;
    auto after = names.substr(0, static_cast<std::size_t>(slid->keep)) + std::string(slid->insert.size(), '+');
    for (const auto& move : slid->moves) {
      CHECK(move.to == std::ssize(after));
      after += names.substr(static_cast<std::size_t>(move.from), static_cast<std::size_t>(move.rows));
    }
    CHECK(std::ssize(after) == slid->length());
    names = after;
  }
};

/// Plays units, each named by its letter; S are rows of a system message before it, m of another one.
std::string slid(window& w, const std::string& before, const std::vector<std::string>& units) {
  rows cache{before};
  for (const auto& unit : units) {
    std::vector<window::stretch> messages;
    const auto begin = unit.find_first_not_of("Sm");
    for (auto i = std::size_t{0}; i < begin;) {
      const auto end = std::min(unit.find_first_not_of(unit[i], i), begin);
      messages.push_back({static_cast<std::int64_t>(end - i), unit[i] == 'S'});
      i = end;
    }
    w.begin_unit(std::ssize(cache.names), messages);
    cache.names += unit;
    unit_outcome out;
    out.is_listen = std::islower(static_cast<unsigned char>(unit.back())) != 0;
    if (!out.is_listen) out.ids = words().encode("x");
    w.end_unit(std::ssize(cache.names), out);
    cache.apply(w.slide(std::ssize(cache.names)));
  }
  return cache.names;
}

} // namespace

TEST_CASE("a window drops messages with the unit that they precede, and keeps those of the system") {
  window basic(words(), {.mode = window_mode::basic, .high_tokens = 20, .low_tokens = 14});
  basic.set_prompt(2, {1});
  CHECK(slid(basic, "PP!", {"aaaa", "mmbbbb", "SSScccc", "mSSdddd"}) == "PP!SSSmSSdddd");
  CHECK(basic.preserved() == 6);
  window again(words(), {.mode = window_mode::basic, .high_tokens = 20, .low_tokens = 14});
  again.set_prompt(2, {1});
  CHECK(slid(again, "PP!", {"aaaa", "mmbbbb", "SSScccc", "mSSdddd", "eeee", "ffff"}) == "PP!SSSSSffff");
  CHECK(again.preserved() == 8);
  CHECK(again.units().size() == 1);
}

TEST_CASE("of the system's messages a window keeps the newest") {
  window w(words(), {.mode = window_mode::basic, .high_tokens = 14, .low_tokens = 12, .system_max_tokens = 4});
  w.set_prompt(2, {1});
  CHECK(slid(w, "PP!", {"SSSaaaa", "SSbbbb", "SScccc", "dddd"}) == "PP!SSSSdddd");
  window none(words(), {.mode = window_mode::basic, .high_tokens = 14, .low_tokens = 12, .system_max_tokens = 1});
  none.set_prompt(2, {1});
  CHECK(slid(none, "PP!", {"SSSaaaa", "bbbb", "cccc"}) == "PP!bbbbcccc");
}

TEST_CASE("a context window puts what was said before the messages that stay") {
  window w(words(), {.mode = window_mode::context, .max_units = 1});
  w.set_prompt(2, {1});
  const auto marker = words().encode("\n\nprevious: ").size(), said = words().encode("x").size();
  const auto told = [&](std::size_t times) { return std::string(marker + times * said + 1, '+'); };
  CHECK(slid(w, "PP!", {"SSAAAA", "mbbbb"}) == "PP" + told(1) + "SSmbbbb");
  CHECK(w.preserved() == std::ssize("PP" + told(1) + "SS"));
  w = window(words(), {.mode = window_mode::context, .max_units = 1});
  w.set_prompt(2, {1});
  CHECK(slid(w, "PP!", {"SSAAAA", "mBBBB", "SCCCC", "dddd"}) == "PP" + told(3) + "SSSdddd");
}

TEST_CASE("a window makes room for a unit, first of units, then of the system's messages, and keeps the prompt") {
  window w(words(), {.mode = window_mode::basic, .high_tokens = 100, .low_tokens = 100});
  w.set_prompt(2, {1});
  const auto before = slid(w, "PP!", {"SSaaaa", "mbbbb", "SScccc"});
  CHECK(before == "PP!SSaaaambbbbSScccc"); // far below the high mark
  const auto room_for = [&](std::int64_t most) {
    auto trial = w;
    rows cache{before};
    cache.apply(trial.make_room(std::ssize(before), most));
    CHECK(std::ssize(cache.names) <= std::max<std::int64_t>(most, 3));
    return cache.names;
  };
  CHECK(room_for(20) == before);
  CHECK(room_for(19) == "PP!SSmbbbbSScccc");
  CHECK(room_for(15) == "PP!SSSScccc");
  CHECK(room_for(9) == "PP!SSSS");
  CHECK(room_for(6) == "PP!SS");
  CHECK(room_for(0) == "PP!");
  window low(words(), {.mode = window_mode::basic, .high_tokens = 100, .low_tokens = 9});
  low.set_prompt(2, {1});
  rows cache{slid(low, "PP!", {"aaaa", "bbbb", "cccc"})};
  cache.apply(low.make_room(15, 14)); // as far as it slides by itself
  CHECK(cache.names == "PP!cccc");
  CHECK(low.events() == 1);
}

TEST_CASE("whatever is dropped, a slide moves each row once") {
  window w(words(), {.mode = window_mode::basic, .high_tokens = 4000, .low_tokens = 1});
  w.set_prompt(20, {1});
  auto length = std::int64_t{21};
  std::optional<window_slide> slid;
  while (!slid) { // each unit has 32 messages of the system in front of it, of five rows each
    w.begin_unit(length, std::vector<window::stretch>(32, {5, true}));
    length += 32 * 5 + 13;
    w.end_unit(length, {});
    slid = w.slide(length);
  }
  auto moved = std::int64_t{0}, last = std::int64_t{0};
  for (const auto& move : slid->moves) {
    CHECK(move.from >= last);
    last = move.from + move.rows;
    moved += move.rows;
  }
  CHECK(moved == 1000); // the newest messages
  CHECK(slid->length() == 21 + 1000);
}

TEST_CASE("what a window remembers leaves room for a unit") {
  const auto marker = std::ssize(words().encode("\n\nprevious: "));
  for (const std::int64_t spare : {0, 2, 500}) {
    window w(words(), {.mode = window_mode::context, .max_units = 1});
    w.set_prompt(2, {1}, 3 + marker + spare);
    rows cache{"PP!"};
    for (auto u = 0; u < 8; ++u) {
      w.begin_unit(std::ssize(cache.names));
      cache.names += "UUUU";
      unit_outcome out;
      out.ids = words().encode("xyz");
      out.text = "xyz";
      w.end_unit(std::ssize(cache.names), out);
      cache.apply(w.slide(std::ssize(cache.names)));
      CHECK(w.preserved() <= 3 + marker + spare);
    }
    CHECK((w.preserved() == 3) == (spare == 0));
  }
}
