#include "tests/inference/engine_fixture.hpp"
#include "tests/inference/sounds.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <unistd.h>
#include <utility>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

constexpr std::size_t delta_samples = 24000;
constexpr std::ptrdiff_t held_back = 3840; ///< samples of each window that the vocoder holds back

/// The vocoder turns rounding errors into phase: the same bound as for recorded streams.
constexpr float sound_tolerance = 1.5e-3F;

engine_fixture speaking_engine(int slots, std::optional<std::uint64_t> seed = 1) {
  return engine_fixture(slots, 2048, {}, seed, able::to_speak);
}

/// Speaks from the first unit on.
duplex_options talkative(int number = 1) {
  auto o = lively(number);
  o.force_listen_count = 0;
  o.window = window_mode::off;
  return o;
}

pcm recording(double seconds, unsigned seed) {
  return std::make_shared<const std::vector<float>>(some_sound(seed, static_cast<std::size_t>(seconds * 16000)));
}

std::vector<step_output> steps_of(const engine_fixture& h, session_id id) {
  auto all = h.all<step_output>();
  std::erase_if(all, [&](const auto& o) { return o.session != id; });
  return all;
}

std::vector<std::vector<float>> sounds_of(const engine_fixture& h, session_id id) {
  std::vector<std::vector<float>> sounds;
  for (const auto& o : steps_of(h, id))
    if (o.audio) sounds.push_back(*o.audio);
  return sounds;
}

float difference(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  if (a.size() != b.size()) return INFINITY;
  auto worst = 0.0F;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return INFINITY;
    for (std::size_t k = 0; k < a[i].size(); ++k) worst = std::max(worst, std::abs(a[i][k] - b[i][k]));
  }
  return worst;
}

void drive(engine_fixture& h, const std::vector<session_id>& who, int units) {
  for (auto u = 0; u < units; ++u) {
    for (auto id : who) h.unit(id, static_cast<std::uint64_t>(u), second(u + static_cast<int>(id) * 3));
    h.run();
  }
}

std::size_t resident_bytes() {
  std::ifstream stream("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  stream >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace

TEST_CASE("a turn is heard: text leads, sound follows, middle deltas are one second") {
  auto h = speaking_engine(1);
  h.open(1, talkative(), 5);
  drive(h, {1}, 24);
  auto sounding = 0, middle = 0, turns = 0, short_turns = 0;
  auto sounded = false; // whether this turn has sounded yet
  std::map<std::uint64_t, std::vector<step_output>> by_unit;
  for (const auto& o : steps_of(h, 1)) by_unit[o.unit].push_back(o);
  CHECK(by_unit.size() == 24);
  for (const auto& [number, deltas] : by_unit) {
    INFO("unit " << number);
    CHECK(deltas.front().first);
    CHECK(deltas.back().last);
    REQUIRE(deltas.size() <= 2);
    if (deltas.size() == 2) {
      CHECK(deltas[0].kind == output_kind::text);
      CHECK_FALSE(deltas[0].last);
      CHECK_FALSE(deltas[0].end_of_turn);
      CHECK_FALSE(deltas[1].first);
      CHECK(deltas[1].kind == output_kind::audio);
    }
    const auto& last = deltas.back();
    if (last.kind == output_kind::listen) {
      CHECK(deltas.size() == 1);
      sounded = false;
      continue;
    }
    if (last.kind == output_kind::audio) {
      ++sounding;
      CHECK(last.metrics.tts_ms > 0);
      CHECK(last.metrics.token2wav_ms > 0);
      CHECK(deltas.front().used.output_audio == last.metrics.n_tts_tokens);
      CHECK(std::all_of(last.audio->begin(), last.audio->end(), [](float x) { return std::abs(x) <= 1; }));
      if (last.end_of_turn) {
        if (!sounded && !last.audio->empty()) {
          ++short_turns; // no sound precedes it
          const auto begin = std::span(*last.audio).first(std::min<std::size_t>(held_back, last.audio->size()));
          CHECK(std::ranges::any_of(begin, [](float x) { return x != 0; }));
        }
      } else {
        middle += std::exchange(sounded, true);
        CHECK(last.audio->size() == delta_samples);
      }
    }
    sounded &= !last.end_of_turn;
    turns += last.end_of_turn;
  }
  CHECK(sounding > 6); // else this shows little
  CHECK(middle > 0);
  CHECK(short_turns > 0);
  CHECK(turns > 1);
  h.check_empty({1});
}

TEST_CASE("sessions together sound as each alone") {
  std::map<session_id, std::vector<std::vector<float>>> alone;
  std::map<session_id, std::vector<std::string>> told;
  const auto own_voice = recording(1.5, 9);
  auto open = [&](engine_fixture& h, session_id id) {
    h.engine.handle(
        open_duplex{id, "Be kind.", talkative(static_cast<int>(id)), nullptr, id == 2 ? own_voice : nullptr, 100 + id});
  };
  std::size_t heard = 0;
  for (session_id id = 0; id < 3; ++id) {
    auto h = speaking_engine(1);
    open(h, id);
    drive(h, {id}, 8);
    alone[id] = sounds_of(h, id);
    told[id] = h.told(id);
    heard += alone[id].size();
  }
  CHECK(heard > 6);
  auto h = speaking_engine(4);
  for (session_id id : {2, 0, 1}) open(h, id);
  h.engine.handle(open_chat{9, 4});
  auto question = ask(9, 1, "Hello?", 40);
  question.tts = true;
  h.engine.handle(std::move(question));
  drive(h, {0, 1, 2}, 8);
  for (session_id id = 0; id < 3; ++id) {
    INFO("session " << id);
    CHECK(h.told(id) == told[id]);
    CHECK(difference(sounds_of(h, id), alone[id]) <= sound_tolerance);
  }
  h.check_empty({0, 1, 2, 9});
}

TEST_CASE("the same seed sounds alike, another one does not") {
  auto play = [](std::uint64_t seed) {
    auto h = speaking_engine(1, seed);
    h.open(1, talkative(2));
    drive(h, {1}, 6);
    return sounds_of(h, 1);
  };
  const auto once = play(11);
  CHECK_FALSE(once.empty());
  CHECK(once == play(11));
  CHECK(once != play(12));
}

TEST_CASE("without sound asked for there is none") {
  auto h = speaking_engine(1), mute = engine_fixture(1);
  auto o = talkative(2);
  o.generate_audio = false;
  for (auto* of : {&h, &mute}) {
    of->open(1, o, 5);
    drive(*of, {1}, 8);
  }
  CHECK(sounds_of(h, 1).empty());
  CHECK(h.told(1) == mute.told(1));
  for (const auto& out : steps_of(h, 1)) {
    CHECK(out.first);
    CHECK(out.last);
    CHECK(out.used.output_audio == 0);
  }
}

TEST_CASE("speech that is cut a thousand times at random points leaves nothing behind") {
  auto h = speaking_engine(1);
  auto o = talkative(2);
  std::mt19937 random(5);
  auto after_text = 0, before_text = 0, fresh_turns = 0;
  auto turn_is_fresh = false; // no sound since the last cut
  auto settled = std::size_t{0};
  std::uint64_t number = 0;
  for (auto cuts = 0; cuts < 1000; ++number) {
    if (number % 40 == 0) { // the context has room for 40 units
      h.engine.handle(close_session{1});
      REQUIRE(h.engine.free_pages() == h.total_pages());
      h.open(1, o, number);
      h.run();
      h.events.clear();
      turn_is_fresh = false;
    }
    h.unit(1, number, second(static_cast<int>(number)));
    const auto before = h.events.size();
    const auto finished = [&] { return h.events.size() > before && std::get<step_output>(h.events.back()).last; };
    const auto undisturbed = random() % 4 == 0;
    for (auto passes = undisturbed ? 1000 : random() % 36; passes > 0 && !finished(); --passes) h.engine.advance();
    if (!finished()) {
      ++cuts;
      const auto told = h.events.size() > before;
      (told ? after_text : before_text) += 1;
      h.engine.handle(cut{1});
      if (told) h.engine.advance(); // a single token closes the turn
      if (!told) h.run();
      REQUIRE(finished());
      REQUIRE_FALSE(h.engine.advance());
      const auto& last = std::get<step_output>(h.events.back());
      REQUIRE(last.kind == output_kind::listen);
      REQUIRE_FALSE(last.audio);
      REQUIRE_FALSE(last.end_of_turn);
      REQUIRE(last.first == !told);
      turn_is_fresh = true;
      if (cuts == 300) settled = resident_bytes();
      continue;
    }
    const auto& last = std::get<step_output>(h.events.back());
    if (!last.audio || !std::exchange(turn_is_fresh, false)) continue;
    ++fresh_turns; // the vocoder holds back samples of a turn's first sound only
    if (last.end_of_turn) continue;
    REQUIRE(last.audio->size() == delta_samples); // silence takes their place
    REQUIRE(std::all_of(last.audio->begin(), last.audio->begin() + held_back, [](float x) { return x == 0; }));
  }
  WARN(number << " units, " << after_text << " cuts after the text, " << before_text << " before it, " << fresh_turns
              << " turns heard after a cut, " << (resident_bytes() - settled) / 1024 << " KiB grown over 700 cuts");
  CHECK(after_text > 50);
  CHECK(before_text > 50);
  CHECK(fresh_turns > 20);
#ifndef __SANITIZE_ADDRESS__ // AddressSanitizer keeps freed memory for a while
  CHECK(resident_bytes() < settled + (16 << 20));
#endif
  h.check_empty({1});
}

TEST_CASE("the tokens of units that are heard, cut or refused add up to the growth of the cache") {
  auto h = speaking_engine(1);
  h.open(1, talkative(3), 5);
  h.run();
  std::mt19937 random(2);
  auto total = std::int64_t{h.all<opened>().at(0).prompt_tokens};
  for (auto u = 0; u < 40; ++u) {
    h.unit(1, static_cast<std::uint64_t>(u), second(u));
    const auto answered = steps_of(h, 1).size();
    for (auto passes = random() % 60; passes > 0 && steps_of(h, 1).size() == answered; --passes) h.engine.advance();
    if (u % 3 == 0) h.engine.handle(cut{1});
    h.run();
  }
  auto owed = std::int64_t{0}; // tokens of a step cut after its usage was reported; the next step reports them
  for (const auto& o : steps_of(h, 1)) {
    if (o.first) total += o.used.input_text + o.used.input_audio + o.used.output_text;
    if (!o.last) continue;
    const auto left = o.metrics.kv_cache_length - (total - 2);
    CHECK((left == 0 || (left == 1 && !o.first && o.kind == output_kind::listen)));
    owed += left;
  }
  CHECK(owed > 0); // otherwise no cut came after a text
}

TEST_CASE("sessions that close while they speak give everything back") {
  for (auto seed = 0U; seed < 8; ++seed) {
    auto h = speaking_engine(3);
    std::mt19937 random(seed);
    h.engine.handle(open_duplex{1, "a", talkative(1), nullptr, recording(1 + seed, seed), 1});
    h.open(2, talkative(2), 2);
    h.engine.handle(open_chat{3, 1});
    auto question = ask(3, 1, "hello", 60);
    question.tts = true;
    question.tts_voice = recording(0.5, seed);
    h.engine.handle(std::move(question));
    for (auto pass = 0U; pass < 30 + random() % 90; ++pass) {
      if (random() % 8 == 0) h.unit(1 + random() % 2, pass, second(static_cast<int>(pass)));
      h.engine.advance();
    }
    for (session_id id : {2, 3, 1}) {
      h.engine.handle(close_session{id});
      const auto count = h.events.size();
      for (auto i = 0U; i < random() % 3; ++i) h.engine.advance();
      for (auto i = count; i < h.events.size(); ++i)
        std::visit([&](const auto& e) { CHECK(e.session != id); }, h.events[i]);
    }
    CHECK_FALSE(h.engine.advance());
    CHECK(h.engine.free_pages() == h.total_pages());
  }
}
