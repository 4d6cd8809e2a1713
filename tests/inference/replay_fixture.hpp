#pragma once

#include "tests/inference/engine_fixture.hpp"
#include "tests/inference/picture_files.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

// A conversation that one engine loses and another takes over, and how the two are compared.
namespace parley::inference::testing {

inline constexpr auto same_sound = 1e-3F;
inline constexpr auto sure = 1e-5; ///< a decision with a smaller margin may go either way
inline constexpr session_id lost = 1, found = 2;

/// The course of a conversation, as its client determines it.
struct course {
  duplex_options options;
  std::uint64_t seed = 1;
  int units = 12;
  able to = able::to_speak;
  quirks how = {};
  std::vector<int> forced = {}; ///< units that carry force_listen
  bool seen = false;            ///< every third unit has a frame
  std::uint64_t cuts = 0;       ///< seed of random cuts; 0 = none
  int context = 2048;
  std::vector<int> broken = {}; ///< units that fail
  std::vector<int> read = {};   ///< units before which the model reads messages
};

inline submit_unit unit_of(const course& c, int number) {
  submit_unit order{};
  order.unit = static_cast<std::uint64_t>(number);
  order.samples = second(number + static_cast<int>(c.seed));
  order.force_listen = std::count(c.forced.begin(), c.forced.end(), number) > 0;
  if (c.seen && number % 3 == 1)
    order.frames.push_back(std::make_shared<const std::string>(jpeg_file(gradient(64 + 8 * number, 48))));
  if (std::count(c.read.begin(), c.read.end(), number) > 0)
    order.context = {{role::system, "Be brief."}, {role::user, "I am in room " + std::to_string(number) + "."}};
  if (std::count(c.broken.begin(), c.broken.end(), number) > 0)
    order.samples = std::make_shared<const std::vector<float>>(16000, std::nanf(""));
  return order;
}

/// The number of passes after which the unit is cut; nothing = never.
inline std::optional<int> cut_after(const course& c, int number) {
  if (c.cuts == 0) return std::nullopt;
  std::mt19937 random(static_cast<unsigned>(c.cuts * 1000) + static_cast<unsigned>(number));
  if (random() % 3 != 0) return std::nullopt;
  return static_cast<int>(random() % (random() % 2 == 0 ? 9 : 45));
}

struct answered {
  std::vector<step_output> deltas; ///< empty if the unit failed
  std::vector<double> margins;     ///< of each draw of speech
};

/// Plays one unit on one engine, to its end or up to its first delta.
inline answered play(engine_fixture& h, submit_unit order, session_id as, std::optional<int> cut_at,
                     bool to_first = false) {
  const auto number = order.unit;
  order.session = as;
  const auto begin = h.events.size();
  answered result;
  const auto sampled = h.draws->speech_margins[as].size();
  const auto collect = [&] {
    result.deltas.clear();
    for (auto i = begin; i < h.events.size(); ++i)
      if (const auto* o = std::get_if<step_output>(&h.events[i]); o && o->session == as) {
        CHECK(o->unit == number);
        result.deltas.push_back(*o);
      }
  };
  h.engine.handle(std::move(order));
  for (auto pass = 0; pass < 100000; ++pass) {
    collect();
    if (to_first && !result.deltas.empty()) return result;
    if (cut_at == pass) h.engine.handle(cut{as});
    if (!h.engine.advance()) break;
  }
  collect();
  const auto& margins = h.draws->speech_margins[as];
  result.margins.assign(margins.begin() + static_cast<std::ptrdiff_t>(sampled), margins.end());
  return result;
}

/// An undisturbed conversation, and what a journal would keep of it.
struct original {
  explicit original(const course& how) : c(how), h(1, c.context, c.how, 7, c.to) {
    h.open(lost, c.options, c.seed);
    h.run();
    for (auto u = 0; u < c.units; ++u) told.push_back(play(h, unit_of(c, u), lost, cut_after(c, u)));
  }

  course c;
  engine_fixture h;
  std::vector<answered> told;
};

/// Whether the sound of unit `number` affects anything after `end`.
inline bool audible(const original& o, int number, int end) {
  for (auto u = number; u < end; ++u)
    if (!o.told[u].deltas.empty() && !o.told[u].deltas.back().choices->voice_open) return false;
  return true;
}

/// Other sessions on the same engine, which speak whenever the one under test does.
class company {
public:
  company(engine_fixture& h, int people, int context) : h_(h), people_(people) {
    for (auto p = 0; p < people; ++p) {
      auto options = lively(p % 3);
      options.force_listen_count = 0;
      h.open(number_of(p), options, 500 + static_cast<std::uint64_t>(p));
    }
    // Stop before anybody's context is full.
    most_ = static_cast<std::uint64_t>(context / 48);
  }

  void speak() {
    if (said_++ < most_)
      for (auto p = 0; p < people_; ++p) h_.unit(number_of(p), said_, second(static_cast<int>(said_) + 5 * p));
  }

  void leave() {
    for (auto p = 0; p < people_; ++p) h_.engine.handle(close_session{number_of(p)});
    h_.run();
  }

private:
  static session_id number_of(int person) { return 100 + static_cast<session_id>(person); }

  engine_fixture& h_;
  int people_;
  std::uint64_t said_ = 0, most_ = 0;
};

inline void replay(const original& o, engine_fixture& h, int end, company* others = nullptr) {
  const auto speak = [&] {
    if (others) others->speak();
  };
  speak();
  h.open(found, o.c.options, o.c.seed);
  h.run();
  const auto is_found = [](const auto& e) { return std::visit([](const auto& of) { return of.session; }, e) == found; };
  std::erase_if(h.events, std::not_fn(is_found));
  REQUIRE(h.all<opened>().size() == 1);
  CHECK(h.all<opened>()[0].seed == o.c.seed);
  h.events.clear();
  auto sent = std::size_t{0};
  for (auto u = 0; u < end; ++u) {
    if (o.told[u].deltas.empty()) continue; // this unit failed
    auto order = unit_of(o.c, u);
    order.session = found;
    order.replay = o.told[u].deltas.back().choices;
    REQUIRE(order.replay->finished);
    order.mute = !audible(o, u, end);
    speak();
    h.engine.handle(std::move(order));
    h.run();
    std::erase_if(h.events, std::not_fn(is_found));
    ++sent;
    REQUIRE(h.events.size() == sent); // a replay reports nothing else
    REQUIRE(std::get<replayed>(h.events.back()).unit == static_cast<std::uint64_t>(u));
  }
  h.events.clear();
}

inline float difference(const pcm& a, const pcm& b) {
  if (!a || !b) return a == b ? 0 : INFINITY;
  if (a->size() != b->size()) return INFINITY;
  auto worst = 0.0F;
  for (std::size_t i = 0; i < a->size(); ++i) worst = std::max(worst, std::abs((*a)[i] - (*b)[i]));
  return worst;
}

inline std::string line(const step_output& o) {
  const auto& c = *o.choices;
  std::string text = std::to_string(o.unit) + " " + std::to_string(static_cast<int>(o.kind)) + " '" + o.text + "'" +
                     (o.first ? " first" : "") + (o.last ? " last" : "") + (o.end_of_turn ? " end" : "") + " kv " +
                     std::to_string(o.metrics.kv_cache_length) + " in " + std::to_string(o.used.input_text) + "+" +
                     std::to_string(o.used.input_audio) + "+" + std::to_string(o.used.input_vision) + " out " +
                     std::to_string(o.used.output_text) + "+" + std::to_string(o.used.output_audio) + " slides " +
                     std::to_string(o.metrics.window_events) + " cut " + std::to_string(static_cast<int>(c.cut)) +
                     (c.forced ? " forced" : "") + (c.voice_open ? " open" : "") + " owed " +
                     std::to_string(c.owed_text) + " sampled";
  for (auto t : c.sampled) text += " " + std::to_string(t);
  text += " remembered";
  for (auto t : c.remembered) text += " " + std::to_string(t);
  text += " spoken";
  for (auto t : c.spoken) text += " " + std::to_string(t);
  for (const auto& stream : {c.after.text, c.after.speech, c.after.noise}) text += " " + std::to_string(stream[0]);
  return text;
}

/// The margin of the first draw of speech that came out differently, if everything before it is equal.
inline std::optional<double> first_difference(const std::vector<token_id>& sampled,
                                              const std::vector<token_id>& original,
                                              const std::vector<double>& margins) {
  const auto [a, b] = std::mismatch(sampled.begin(), sampled.end(), original.begin(), original.end());
  const auto place = static_cast<std::size_t>(b - original.begin());
  if (a == sampled.end() || b == original.end() || place >= margins.size()) return std::nullopt;
  return margins[place];
}

/// The most by which a margin moved, among the draws that both made before any difference.
inline double margins_moved(const answered& mine, const answered& original) {
  const auto &a = mine.deltas.back().choices->spoken, &b = original.deltas.back().choices->spoken;
  const auto alike = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  const auto known = a.size() - std::min(a.size(), mine.margins.size()); // drawn before the unit was lost
  auto most = 0.0;
  for (auto i = known; i < std::min(alike, original.margins.size()); ++i)
    most = std::max(most, std::abs(mine.margins[i - known] - original.margins[i]));
  return most;
}

struct comparison {
  int units = 0;
  std::size_t draws = 0, close = 0; ///< draws of speech, and how many of them could go either way
  double moved = 0;                 ///< the most by which a margin of speech moved
  int too_close = 0;                ///< draws of speech that did go the other way, within rounding
  float sound = 0;

  /// Returns false when there is nothing more to compare.
  bool add(const answered& mine, const answered& original) {
    ++units;
    if (!mine.deltas.empty() && !original.deltas.empty()) {
      const auto &a = *mine.deltas.back().choices, &b = *original.deltas.back().choices;
      draws += original.margins.size();
      close += static_cast<std::size_t>(
          std::count_if(original.margins.begin(), original.margins.end(), [](double m) { return m < sure; }));
      moved = std::max(moved, margins_moved(mine, original));
      const auto margin = first_difference(a.spoken, b.spoken, original.margins);
      if (margin && *margin < sure && a.sampled == b.sampled) {
        ++too_close;
        std::cout << "replay: a draw of speech with a margin of " << *margin << " went the other way\n";
        return false;
      }
      if (margin) UNSCOPED_INFO("the margin was " << *margin);
    }
    CHECK(mine.deltas.size() == original.deltas.size());
    for (std::size_t i = 0; i < std::min(mine.deltas.size(), original.deltas.size()); ++i) {
      CHECK(line(mine.deltas[i]) == line(original.deltas[i]));
      sound = std::max(sound, difference(mine.deltas[i].audio, original.deltas[i].audio));
    }
    return true;
  }

  ~comparison() {
    INFO("sound differs by " << sound << ", margins of speech by " << moved);
    CHECK(sound <= same_sound);
    CHECK(moved <= sure);           // rounding may change close draws, but no others
    CHECK(too_close * 10 <= units); // else this shows nothing
  }
};

/// Loses the session before each of these units and continues on another engine.
inline void lose_and_go_on(const original& o, const std::vector<int>& points, int onwards = 4) {
  comparison all;
  for (auto end : points) {
    INFO("seed " << o.c.seed << ", lost before unit " << end);
    engine_fixture h(1, o.c.context, o.c.how, 99, o.c.to);
    replay(o, h, end);
    for (auto u = end; u < std::min(end + onwards, o.c.units); ++u)
      if (!all.add(play(h, unit_of(o.c, u), found, cut_after(o.c, u)), o.told[u])) break;
    h.check_empty({found});
  }
}

/// Speaks from the first unit on.
inline duplex_options talkative(int number) {
  auto o = lively(number);
  o.force_listen_count = 0;
  o.window = window_mode::off;
  return o;
}

inline std::vector<int> every(int units, int step = 1) {
  std::vector<int> points;
  for (auto u = 1; u < units; u += step) points.push_back(u);
  return points;
}

template<class Holds>
int count_units(const original& o, Holds holds) {
  return static_cast<int>(std::count_if(o.told.begin(), o.told.end(),
                                        [&](const auto& a) { return !a.deltas.empty() && holds(a.deltas.back()); }));
}

inline bool sounds(const step_output& o) {
  return o.audio != nullptr;
}

} // namespace parley::inference::testing
