#include "tests/inference/engine_fixture.hpp"
#include "tests/inference/picture_files.hpp"
#include "tests/inference/sounds.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <numeric>
#include <random>

// What a session gets does not depend on who else is in the batch, nor on when they came.
using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

constexpr auto people = 32;
constexpr auto sure = 1e-5;       ///< a decision with a smaller margin may go either way
constexpr auto same_sound = 1e-3; ///< for samples in [-1, 1]

image_file view(int number) {
  static std::map<int, image_file> made;
  auto& file = made[number];
  if (!file) file = std::make_shared<const std::string>(jpeg_file(gradient(96 + 40 * number, 80)));
  return file;
}

open_duplex opening(int who, bool heard) {
  open_duplex order;
  order.session = static_cast<session_id>(who);
  for (auto i = 0; i <= who % 7; ++i) order.system_prompt += "You are a helpful assistant. ";
  order.options = lively(who % 6);
  order.options.generate_audio = heard;
  if (who % 8 == 5) order.voice = second(who);
  order.seed = 100 + static_cast<std::uint64_t>(who);
  return order;
}

/// Everything that this person sends, in order. Every third person types, the others talk; every fourth shows something
/// as well.
std::vector<command> script(int who, int units, bool heard) {
  const auto id = static_cast<session_id>(who);
  std::vector<command> orders;
  if (who % 3 == 2) {
    orders.emplace_back(open_chat{id, 100 + id});
    for (auto n = 1; n <= 1 + who % 2; ++n) {
      auto turn = ask(id, static_cast<std::uint64_t>(n), "Question " + std::to_string(who * n) + "?", 8 + who);
      turn.do_sample = who % 2 == 1;
      turn.tts = heard && who % 4 == 2;
      turn.streaming = who % 8 != 2;
      if (who % 4 == 0) turn.messages.front().content.emplace_back(image_item{view(who % 3)});
      orders.emplace_back(std::move(turn));
    }
    return orders;
  }
  orders.emplace_back(opening(who, heard));
  for (auto n = 1; n <= units + who % 3; ++n) {
    submit_unit unit{{second(who + n), {}, 1, n % 5 == 4 && who % 2 == 0}, id, static_cast<std::uint64_t>(n)};
    if (who % 4 == 0) unit.frames.assign(1, view((who + n) % 3));
    orders.emplace_back(std::move(unit));
  }
  return orders;
}

/// What one person received.
struct told {
  std::vector<std::string> lines;
  std::vector<float> sound;
  std::vector<std::int64_t> spoken;   ///< speech tokens
  std::vector<double> speech_margins; ///< the margin of each of their draws
  double least_margin = std::numeric_limits<double>::infinity();
};

void add_tokens(told& to, const std::vector<std::int64_t>& spoken) {
  to.spoken.insert(to.spoken.end(), spoken.begin(), spoken.end());
}

void add_sound(told& to, const pcm& sound) {
  if (sound) to.sound.insert(to.sound.end(), sound->begin(), sound->end());
}

/// Runs these people on one engine. `arrival` decides who speaks when; between two passes anybody may.
std::map<int, told> play(const std::vector<int>& who, int units, able to, std::mt19937 arrival) {
  engine_fixture h(static_cast<int>(who.size()), 1024, {}, 1, to);
  std::vector<std::vector<command>> left;
  for (auto p : who) left.push_back(script(p, units, to == able::to_speak));
  for (auto& orders : left) std::reverse(orders.begin(), orders.end());
  auto remaining = std::accumulate(left.begin(), left.end(), std::size_t{0},
                                   [](auto sum, const auto& orders) { return sum + orders.size(); });
  for (auto busy = true; busy || remaining > 0;) {
    for (auto talking = arrival() % (who.size() + 1); talking > 0 && remaining > 0;) {
      auto& orders = left[arrival() % left.size()];
      if (orders.empty()) continue;
      h.engine.handle(std::move(orders.back()));
      orders.pop_back();
      --remaining, --talking;
    }
    busy = h.engine.advance();
  }
  std::map<int, told> all;
  for (auto p : who) {
    auto& t = all[p];
    t.lines = h.told(static_cast<session_id>(p));
    t.speech_margins = h.draws->speech(static_cast<session_id>(p));
    for (const auto& d : h.draws->text(static_cast<session_id>(p))) t.least_margin = std::min(t.least_margin, d.margin);
  }
  for (const auto& e : h.events) {
    if (const auto* o = std::get_if<step_output>(&e)) {
      add_sound(all[static_cast<int>(o->session)], o->audio);
      if (o->last && o->choices) add_tokens(all[static_cast<int>(o->session)], o->choices->spoken);
    }
    if (const auto* d = std::get_if<chat_delta>(&e)) {
      add_sound(all[static_cast<int>(d->session)], d->audio);
      add_tokens(all[static_cast<int>(d->session)], d->spoken);
    }
    if (const auto* d = std::get_if<chat_done>(&e)) add_sound(all[static_cast<int>(d->session)], d->audio);
  }
  return all;
}

std::vector<int> everybody() {
  std::vector<int> who(people);
  std::iota(who.begin(), who.end(), 1);
  return who;
}

/// Everybody alone on an engine, once.
std::map<int, told> alone(int units, able to) {
  std::map<int, told> all;
  for (auto p : everybody()) all.merge(play({p}, units, to, std::mt19937(1)));
  return all;
}

struct comparison {
  double sound = 0;
  double least_margin = std::numeric_limits<double>::infinity();
  int sessions = 0;
  int too_close = 0;

  void add(const told& mine, const told& solo) {
    ++sessions;
    least_margin = std::min(least_margin, solo.least_margin);
    if (mine.lines != solo.lines && solo.least_margin < sure) {
      ++too_close;
      std::cout << "company: a decision with a margin of " << solo.least_margin << " went the other way\n";
      return;
    }
    CHECK(mine.lines == solo.lines);
    const auto first = std::mismatch(mine.spoken.begin(), mine.spoken.end(), solo.spoken.begin(), solo.spoken.end());
    const auto place = static_cast<std::size_t>(first.second - solo.spoken.begin());
    if (mine.spoken != solo.spoken && place < solo.speech_margins.size() && solo.speech_margins[place] < sure) {
      ++too_close;
      std::cout << "company: a draw of speech with a margin of " << solo.speech_margins[place]
                << " went the other way\n";
      return;
    }
    CHECK(mine.spoken == solo.spoken);
    REQUIRE(mine.sound.size() == solo.sound.size());
    for (auto i = std::size_t{0}; i < mine.sound.size(); ++i)
      sound = std::max(sound, std::abs(double{mine.sound[i]} - double{solo.sound[i]}));
  }

  void report(const char* what) const {
    std::cout << "company: " << what << ": " << sessions << " sessions as alone, " << too_close
              << " too close to call; max difference of sound " << sound << ", least decision margin " << least_margin
              << '\n';
    CHECK(too_close * 10 <= sessions); // else this shows nothing
    CHECK(sound <= same_sound);
  }
};

} // namespace

TEST_CASE("32 people together are told what each is told alone, in text and sound") {
  constexpr auto units = 4;
  const auto solo = alone(units, able::to_speak);
  const auto sounding = std::count_if(solo.begin(), solo.end(), [](const auto& s) { return !s.second.sound.empty(); });
  CHECK(sounding > people / 2); // else this shows little
  comparison result;
  for (const auto& [who, mine] : play(everybody(), units, able::to_speak, std::mt19937(7))) {
    INFO("person " << who);
    result.add(mine, solo.at(who));
  }
  result.report("32 at once");
}

TEST_CASE("200 shuffled arrivals change nothing") {
  constexpr auto units = 2, rounds = 200, at_once = 6;
  const auto solo = alone(units, able::to_write);
  comparison result;
  for (auto round = 0U; round < rounds; ++round) {
    std::mt19937 random(round);
    auto who = everybody();
    std::shuffle(who.begin(), who.end(), random);
    who.resize(at_once);
    for (const auto& [p, mine] : play(who, units, able::to_write, random)) {
      INFO("round " << round << ", person " << p);
      result.add(mine, solo.at(p));
    }
  }
  result.report("200 shuffled arrivals of 6");
}
