#include "tests/inference/engine_fixture.hpp"
#include "tests/inference/sounds.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

engine_fixture speaking_engine(int slots) {
  return engine_fixture(slots, 2048, {}, 1, able::to_speak);
}

submit_turn say(std::uint64_t turn, int max_new_tokens, bool streaming = true) {
  auto t = ask(1, turn, "Tell me something.", max_new_tokens);
  t.tts = true;
  t.streaming = streaming;
  t.do_sample = true;
  t.seed = turn;
  return t;
}

struct heard {
  std::string text;
  std::vector<float> sound;
  int pieces = 0;
};

heard heard_of(const engine_fixture& h, std::uint64_t turn) {
  heard all;
  for (const auto& d : h.all<chat_delta>()) {
    if (d.turn != turn) continue;
    all.text += d.text;
    if (!d.audio) continue;
    CHECK(d.text.empty());
    all.sound.insert(all.sound.end(), d.audio->begin(), d.audio->end());
    ++all.pieces;
  }
  return all;
}

} // namespace

TEST_CASE("a chat answer is heard in pieces, and its text comes once") {
  auto h = speaking_engine(1);
  h.engine.handle(open_chat{1, 4});
  for (std::uint64_t turn : {1, 2, 3}) h.engine.handle(say(turn, turn == 3 ? 11 : 60));
  h.run();
  const auto done = h.all<chat_done>();
  REQUIRE(done.size() == 3);
  for (const auto& d : done) {
    const auto all = heard_of(h, d.turn);
    INFO("turn " << d.turn << ": " << d.text);
    CHECK(all.text == d.text);
    CHECK_FALSE(d.audio);
    CHECK(all.pieces > 0);
    CHECK(d.used.output_audio == d.metrics.n_tts_tokens);
    // Three tokens of silence come first; every token becomes two frames of 480 samples.
    CHECK(all.sound.size() == static_cast<std::size_t>((d.metrics.n_tts_tokens + 3) * 2 * 480));
    for (auto x : all.sound) REQUIRE(std::abs(x) <= 1);
    CHECK(d.metrics.tts_ms > 0);
    CHECK(d.metrics.token2wav_ms > 0);
  }
  h.check_empty({1});
}

TEST_CASE("sound leaves before the last words are known") {
  auto h = speaking_engine(1);
  h.engine.handle(open_chat{1, 4});
  auto question = say(1, 400);
  question.length_penalty = 5;
  h.engine.handle(std::move(question));
  h.run();
  auto first_sound = -1, last_text = -1, place = 0;
  for (const auto& d : h.all<chat_delta>()) {
    if (d.audio && first_sound < 0) first_sound = place;
    if (!d.text.empty()) last_text = place;
    ++place;
  }
  CHECK(h.all<chat_done>().at(0).used.output_text > 60); // else this shows little
  CHECK(first_sound > 0);
  CHECK(first_sound < last_text);
}

TEST_CASE("an answer that does not stream is heard at its end, whole") {
  auto h = speaking_engine(1);
  h.engine.handle(open_chat{1, 4});
  h.engine.handle(say(1, 25, false));
  h.run();
  const auto done = h.all<chat_done>();
  REQUIRE(done.size() == 1);
  REQUIRE(done[0].audio);
  CHECK(heard_of(h, 1).pieces == 0);
  CHECK(done[0].metrics.n_tts_tokens >= 50);
  CHECK(done[0].audio->size() == static_cast<std::size_t>(done[0].metrics.n_tts_tokens * 2 * 480));
  CHECK(done[0].text == heard_of(h, 1).text);
}

TEST_CASE("chat answers sound alike alone, in company and again; another seed differs") {
  auto alone = [](std::uint64_t seed) {
    auto h = speaking_engine(1);
    h.engine.handle(open_chat{1, 4});
    auto turn = say(1, 40);
    turn.seed = seed;
    h.engine.handle(std::move(turn));
    h.run();
    return heard_of(h, 1);
  };
  const auto once = alone(1), again = alone(1);
  CHECK(once.sound == again.sound);
  CHECK(once.sound != alone(2).sound);
  auto h = speaking_engine(3);
  for (session_id id : {2, 3}) {
    auto o = lively(static_cast<int>(id));
    o.force_listen_count = 0;
    h.open(id, o, id);
  }
  h.engine.handle(open_chat{1, 4});
  auto turn = say(1, 40);
  h.engine.handle(std::move(turn));
  for (auto u = 0; u < 4; ++u) {
    for (session_id id : {2, 3}) h.unit(id, static_cast<std::uint64_t>(u), second(u));
    for (auto i = 0; i < 25; ++i) h.engine.advance();
  }
  h.run();
  const auto together = heard_of(h, 1);
  CHECK(together.text == once.text);
  REQUIRE(together.sound.size() == once.sound.size());
  auto worst = 0.0F;
  for (std::size_t i = 0; i < once.sound.size(); ++i)
    worst = std::max(worst, std::abs(together.sound[i] - once.sound[i]));
  CHECK(worst <= 1.5e-3F);
}

TEST_CASE("a chat without sound asked for makes none, and cancelling stops it") {
  auto h = speaking_engine(1);
  h.engine.handle(open_chat{1, 4});
  h.engine.handle(ask(1, 1, "Hello", 30));
  h.run();
  CHECK(heard_of(h, 1).pieces == 0);
  CHECK(h.all<chat_done>().at(0).used.output_audio == 0);
  for (std::uint64_t turn = 2; turn < 30; ++turn) {
    h.events.clear();
    h.engine.handle(say(turn, 300));
    for (auto passes = turn * 4; passes > 0 && h.all<chat_done>().empty(); --passes) h.engine.advance();
    if (!h.all<chat_done>().empty()) continue;
    h.engine.handle(cancel_turn{1});
    const auto done = h.all<chat_done>();
    REQUIRE(done.size() == 1);
    CHECK(done[0].reason == finish_reason::cancelled);
    CHECK(done[0].text == heard_of(h, turn).text);
    CHECK_FALSE(h.engine.advance());
  }
  h.events.clear();
  h.engine.handle(say(40, 20));
  h.run();
  CHECK(heard_of(h, 40).pieces > 0);
  h.check_empty({1});
}
