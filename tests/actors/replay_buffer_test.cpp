#include "actors/replay/replay_buffer.hpp"

#include <catch2/catch.hpp>

#include <cstddef>

namespace parley::actors {

namespace {

using namespace conversation;

pcm sound(float value, std::size_t count = 16000) {
  return std::make_shared<const std::vector<float>>(count, value);
}

std::shared_ptr<unit_choices> finished(std::int64_t token, bool voice_open = false) {
  auto made = std::make_shared<unit_choices>();
  made->finished = true;
  made->sampled = {token};
  made->voice_open = voice_open;
  return made;
}

/// A session and its engine, as the buffer sees them.
struct talk {
  explicit talk(std::size_t most_bytes = 64u << 20) : notes(most_bytes) {
    open_duplex order{};
    order.session = 1;
    order.system_prompt = "Be brief.";
    notes.enter(order);
    notes.note(opened{1, 7, {}, 42});
  }

  submit_unit send(std::uint64_t number) {
    submit_unit order{};
    order.session = 1;
    order.unit = number;
    order.samples = sound(0.25F);
    order.force_listen = number == 1;
    if (number == 2) order.context = {{role::user, "Hello"}};
    return std::get<submit_unit>(notes.enter(order));
  }

  void answer(std::uint64_t number, std::shared_ptr<const unit_choices> choices, bool last = true) {
    step_output output{};
    output.session = 1;
    output.unit = number;
    output.last = last;
    output.choices = std::move(choices);
    notes.note(output);
  }

  void units(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      send(i);
      answer(i, finished(static_cast<std::int64_t>(100 + i)));
    }
  }

  /// Replays everything; each command is answered at once.
  std::vector<submit_unit> replay(session_id as) {
    std::vector<submit_unit> sent;
    while (auto order = notes.next(as)) { // until the rest is still on disk
      if (const auto* open = std::get_if<open_duplex>(&*order)) {
        CHECK(open->session == as);
        CHECK(open->seed == 42U);
        notes.note(opened{as, 7, {}, 42});
        continue;
      }
      sent.push_back(std::get<submit_unit>(*order));
      CHECK(sent.back().session == as);
      notes.note(replayed{as, sent.back().unit});
    }
    return sent;
  }

  replay_buffer notes;
};

} // namespace

TEST_CASE("a session is opened and replayed as it was") {
  talk t;
  t.units(3);
  CHECK(t.notes.caught_up());
  CHECK(t.notes.whole());
  t.notes.rewind();
  CHECK_FALSE(t.notes.caught_up());
  const auto sent = t.replay(9);
  CHECK(t.notes.caught_up());
  REQUIRE(sent.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(sent[i].unit == i);
    CHECK(*sent[i].samples == *sound(0.25F));
    CHECK(sent[i].force_listen == (i == 1));
    CHECK(sent[i].context.size() == (i == 2 ? 1 : 0));
    CHECK(sent[i].replay->sampled == std::vector<std::int64_t>{100 + static_cast<std::int64_t>(i)});
    CHECK(sent[i].mute);
  }
  CHECK_FALSE(t.send(3).replay);
  t.answer(3, finished(1));
  t.notes.rewind(); // replay once more
  CHECK(t.replay(10).size() == 4);
}

TEST_CASE("units wait for the open, and a few of them are under way at a time") {
  talk t;
  t.units(10);
  t.notes.rewind();
  CHECK(std::holds_alternative<open_duplex>(*t.notes.next(2)));
  CHECK_FALSE(t.notes.next(2));
  t.notes.note(opened{2, 7, {}, 42});
  std::size_t sent = 0;
  while (t.notes.next(2)) ++sent;
  CHECK(sent > 0);
  CHECK(sent < 10);
  t.notes.note(replayed{2, 0});
  CHECK(t.notes.next(2));
  CHECK_FALSE(t.notes.next(2));
  t.notes.rewind(); // the new engine is lost, too
  CHECK(t.replay(3).size() == 10);
}

TEST_CASE("only the open turn is spoken again") {
  talk t;
  const std::vector<bool> open{false, true, true, false, true, true};
  for (std::uint64_t i = 0; i < open.size(); ++i) {
    t.send(i);
    t.answer(i, finished(1, open[i]));
  }
  t.notes.rewind();
  const auto sent = t.replay(2);
  REQUIRE(sent.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(sent[i].mute == (i < 4));
}

TEST_CASE("a unit whose text has left is sent again with what was chosen, another one as it came") {
  talk t;
  t.units(1);
  t.send(1);
  auto words = std::make_shared<unit_choices>();
  words->sampled = {5, 6};
  t.answer(1, words, false);
  t.notes.rewind();
  CHECK(t.replay(2).size() == 1);
  const auto again = t.send(1);
  REQUIRE(again.replay);
  CHECK(again.replay == words);
  CHECK_FALSE(again.replay->finished);
  t.notes.rewind(); // lost before it answered
  CHECK(t.replay(3).size() == 1);
  CHECK(t.send(1).replay == words);
  t.answer(1, finished(5));
  t.send(2);
  t.notes.rewind();
  CHECK(t.replay(4).size() == 2);
  CHECK_FALSE(t.send(2).replay);
}

TEST_CASE("what failed never was; a failed move changes nothing") {
  talk t;
  t.send(0);
  t.notes.rewind();
  t.notes.next(2);
  t.notes.note(failed{2, 0, failure_kind::inference, "no slot"}); // the open failed
  t.notes.rewind();
  t.replay(3);
  t.send(0);
  t.answer(0, finished(4));
  t.send(1);
  t.notes.note(failed{1, 1, failure_kind::invalid, "a picture"});
  t.send(2);
  t.answer(2, finished(5));
  t.notes.rewind();
  const auto sent = t.replay(4);
  REQUIRE(sent.size() == 2);
  CHECK(sent[1].unit == 2);
}

TEST_CASE("memory is bounded; what does not fit can't be moved") {
  constexpr std::size_t most = 10 * 33000;
  talk t(most);
  t.units(9);
  CHECK(t.notes.whole());
  CHECK(t.notes.bytes() <= most);
  t.units(2);
  CHECK_FALSE(t.notes.whole());
  CHECK(t.notes.overflown());
  CHECK(t.notes.bytes() == 0);
  t.notes.rewind();
  CHECK_FALSE(t.notes.next(2));
  t.notes.enter(open_duplex{}); // a new session starts from scratch
  t.notes.note(opened{});
  CHECK(t.notes.whole());
}

TEST_CASE("what a second takes in memory") {
  auto busy = std::make_shared<unit_choices>();
  busy->finished = true;
  busy->sampled.assign(20, 1);
  busy->remembered.assign(20, 1);
  busy->spoken.assign(26, 1);
  for (const auto& [value, least] : {std::pair{0.25F, 32000U}, std::pair{0.1F, 64000U}}) {
    talk t;
    for (std::uint64_t u = 0; u < 60; ++u) {
      submit_unit order{};
      order.unit = u;
      order.samples = sound(value);
      t.notes.enter(order);
      t.answer(u, busy);
    }
    WARN(t.notes.bytes() / 60 << " bytes a second, " << least << " of them sound");
    CHECK(t.notes.bytes() / 60 >= least);
    CHECK(t.notes.bytes() / 60 < least + 1200);
  }
}

TEST_CASE("a session that is not open yet, or does not tell what it chose, can't be moved") {
  replay_buffer fresh;
  CHECK_FALSE(fresh.whole());
  open_duplex order{};
  fresh.enter(order);
  CHECK_FALSE(fresh.whole());
  talk t;
  t.send(0);
  t.answer(0, nullptr);
  CHECK_FALSE(t.notes.whole());
}

TEST_CASE("a chat goes on in its turn, and chance goes on where it was") {
  replay_buffer notes;
  notes.enter(open_chat{1, {}});
  notes.note(opened{1, 0, {}, 42});
  submit_turn turn{};
  turn.session = 1;
  turn.turn = 1;
  notes.enter(turn);
  notes.note(chat_delta{1, 1, "He", nullptr, {3, 4}, {}});
  chat_done done{};
  done.turn = 1;
  done.after.text = {1, 2, 3, 4};
  notes.note(done);
  turn.turn = 2;
  CHECK_FALSE(std::get<submit_turn>(notes.enter(turn)).replay);
  notes.note(chat_delta{1, 2, "Hel", nullptr, {7, 8}, {}});
  notes.note(chat_delta{1, 2, {}, sound(0, 100), {}, {20, 21}});
  notes.note(chat_delta{1, 2, "lo", nullptr, {9}, {22}, {{{"lo", -1}, {}}}, {{0, "f", ""}, {0, "", "{"}}});
  notes.rewind();
  const auto open = std::get<open_chat>(*notes.next(5));
  CHECK(open.session == 5);
  CHECK(open.seed == 42U);
  REQUIRE(open.chance);
  CHECK(open.chance->text == done.after.text);
  CHECK_FALSE(notes.caught_up());
  notes.note(opened{5, 0, {}, 42});
  CHECK(notes.caught_up());
  const auto again = std::get<submit_turn>(notes.enter(turn));
  REQUIRE(again.replay);
  CHECK(again.replay->sampled == std::vector<std::int64_t>{7, 8, 9});
  CHECK(again.replay->spoken == std::vector<std::int64_t>{20, 21, 22});
  CHECK(again.replay->text_bytes == 5);
  CHECK(again.replay->samples == 100);
  CHECK(again.replay->scores == 1);
  CHECK(again.replay->call_pieces == 2);
}

TEST_CASE("an answer without an end is noticed") {
  replay_buffer notes;
  notes.enter(open_chat{1, {}});
  notes.note(opened{1, 0, {}, 42});
  submit_turn order{};
  order.session = 1;
  order.turn = 5;
  notes.enter(order);
  chat_delta delta{1, 5, std::string(std::size_t{1} << 20, 'x'), nullptr};
  int taken = 0;
  for (; !notes.endless(delta) && taken < 100; ++taken) notes.note(delta);
  CHECK(taken == 4);
  CHECK(notes.endless(delta) == 5);
  delta.turn = 6; // of no turn that runs
  CHECK_FALSE(notes.endless(delta));

  talk session;
  session.send(0);
  step_output output{};
  output.session = 1;
  output.last = false;
  int answers = 0;
  for (; !session.notes.endless(output) && answers < 100; ++answers) session.notes.note(output);
  CHECK(answers == 16);
  CHECK(session.notes.endless(output) == 0);
  // An engine that says more often than it was asked to that a unit is replayed confuses nobody.
  session.units(0);
  session.notes.rewind();
  for (int i = 0; i < 5; ++i) session.notes.note(replayed{1, 0});
  CHECK(session.notes.next(2));
}

} // namespace parley::actors
