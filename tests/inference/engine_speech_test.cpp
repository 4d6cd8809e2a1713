#include "tests/inference/engine_house.hpp"
#include "tests/inference/sounds.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

constexpr std::size_t delta_samples = 24000;

/// The vocoder turns rounding errors into phase: the same bound as for recorded streams.
constexpr float sound_tolerance = 1.5e-3F;

house speaking_house(int slots, std::optional<std::uint64_t> seed = 1) {
  return house(slots, 2048, {}, seed, able::to_speak);
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

std::vector<step_output> steps_of(const house& h, session_id id) {
  auto all = h.all<step_output>();
  std::erase_if(all, [&](const auto& o) { return o.session != id; });
  return all;
}

std::vector<std::vector<float>> sounds_of(const house& h, session_id id) {
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

void drive(house& h, const std::vector<session_id>& who, int units) {
  for (auto u = 0; u < units; ++u) {
    for (auto id : who) h.unit(id, static_cast<std::uint64_t>(u), second(u + static_cast<int>(id) * 3));
    h.run();
  }
}

} // namespace

TEST_CASE("a turn is heard: text leads, sound follows, middle deltas are one second") {
  auto h = speaking_house(1);
  h.open(1, talkative(), 5);
  drive(h, {1}, 24);
  auto sounding = 0, middle = 0, turns = 0;
  auto sounded = false; // in this turn
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
      if (std::exchange(sounded, true) && !last.end_of_turn) {
        ++middle;
        CHECK(last.audio->size() == delta_samples);
      }
    }
    sounded &= !last.end_of_turn;
    turns += last.end_of_turn;
  }
  CHECK(sounding > 6); // else this shows little
  CHECK(middle > 0);
  CHECK(turns > 1);
  h.check_empty({1});
}

TEST_CASE("sessions together sound as each alone") {
  std::map<session_id, std::vector<std::vector<float>>> alone;
  std::map<session_id, std::vector<std::string>> told;
  const auto own_voice = recording(1.5, 9);
  auto open = [&](house& h, session_id id) {
    h.engine.handle(
        open_duplex{id, "Be kind.", talkative(static_cast<int>(id)), nullptr, id == 2 ? own_voice : nullptr, 100 + id});
  };
  std::size_t heard = 0;
  for (session_id id = 0; id < 3; ++id) {
    auto h = speaking_house(1);
    open(h, id);
    drive(h, {id}, 8);
    alone[id] = sounds_of(h, id);
    told[id] = h.told(id);
    heard += alone[id].size();
  }
  CHECK(heard > 6);
  auto h = speaking_house(4);
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
    auto h = speaking_house(1, seed);
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
  auto h = speaking_house(1), mute = house(1);
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
