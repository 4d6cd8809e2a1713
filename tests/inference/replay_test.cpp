#include "tests/inference/engine_house.hpp"
#include "tests/inference/picture_files.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <random>

// A session that is taken up on another engine goes on as if nothing had happened.
using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

constexpr auto same_sound = 1e-3F;
constexpr auto sure = 1e-5; ///< a decision closer than this may go either way
constexpr session_id lost = 1, found = 2;

/// How a conversation goes, as its client makes it.
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
};

submit_unit unit_of(const course& c, int number) {
  submit_unit order{};
  order.unit = static_cast<std::uint64_t>(number);
  order.samples = second(number + static_cast<int>(c.seed));
  order.force_listen = std::count(c.forced.begin(), c.forced.end(), number) > 0;
  if (c.seen && number % 3 == 1)
    order.frames.push_back(std::make_shared<const std::string>(jpeg_file(gradient(64 + 8 * number, 48))));
  if (std::count(c.broken.begin(), c.broken.end(), number) > 0)
    order.samples = std::make_shared<const std::vector<float>>(16000, std::nanf(""));
  return order;
}

/// After how many passes the unit is cut; none = never.
std::optional<int> cut_after(const course& c, int number) {
  if (c.cuts == 0) return std::nullopt;
  std::mt19937 random(static_cast<unsigned>(c.cuts * 1000) + static_cast<unsigned>(number));
  if (random() % 3 != 0) return std::nullopt;
  return static_cast<int>(random() % (random() % 2 == 0 ? 9 : 45));
}

struct answered {
  std::vector<step_output> deltas; ///< none: it failed
  std::vector<double> margins;     ///< of each draw of speech
};

/// One unit on one engine, all of it or up to its first delta.
answered play(house& h, submit_unit order, session_id as, std::optional<int> cut_at, bool to_first = false) {
  const auto number = order.unit;
  order.session = as;
  const auto begin = h.events.size();
  answered result;
  const auto drawn = h.speech_margins[as].size();
  const auto collect = [&] {
    result.deltas.clear();
    for (auto i = begin; i < h.events.size(); ++i)
      if (const auto* o = std::get_if<step_output>(&h.events[i])) {
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
  const auto& margins = h.speech_margins[as];
  result.margins.assign(margins.begin() + static_cast<std::ptrdiff_t>(drawn), margins.end());
  return result;
}

/// An undisturbed conversation, and what a journal would hold of it.
struct original {
  explicit original(const course& how) : c(how), h(1, c.context, c.how, 7, c.to) {
    h.open(lost, c.options, c.seed);
    h.run();
    for (auto u = 0; u < c.units; ++u) told.push_back(play(h, unit_of(c, u), lost, cut_after(c, u)));
  }

  course c;
  house h;
  std::vector<answered> told;
};

/// Whether the sound of unit `number` matters to what comes after `end`.
bool audible(const original& o, int number, int end) {
  for (auto u = number; u < end; ++u)
    if (!o.told[u].deltas.empty() && !o.told[u].deltas.back().choices->voice_open) return false;
  return true;
}

void replay(const original& o, house& h, int end) {
  h.open(found, o.c.options, o.c.seed);
  h.run();
  REQUIRE(h.all<opened>().size() == 1);
  CHECK(h.all<opened>()[0].seed == o.c.seed);
  h.events.clear();
  auto sent = std::size_t{0};
  for (auto u = 0; u < end; ++u) {
    if (o.told[u].deltas.empty()) continue; // failed
    auto order = unit_of(o.c, u);
    order.session = found;
    order.replay = o.told[u].deltas.back().choices;
    REQUIRE(order.replay->finished);
    order.mute = !audible(o, u, end);
    h.engine.handle(std::move(order));
    h.run();
    ++sent;
    REQUIRE(h.events.size() == sent); // not a word
    REQUIRE(std::get<replayed>(h.events.back()).unit == static_cast<std::uint64_t>(u));
  }
  h.events.clear();
}

float difference(const pcm& a, const pcm& b) {
  if (!a || !b) return a == b ? 0 : INFINITY;
  if (a->size() != b->size()) return INFINITY;
  auto worst = 0.0F;
  for (std::size_t i = 0; i < a->size(); ++i) worst = std::max(worst, std::abs((*a)[i] - (*b)[i]));
  return worst;
}

std::string line(const step_output& o) {
  const auto& c = *o.choices;
  std::string text = std::to_string(o.unit) + " " + std::to_string(static_cast<int>(o.kind)) + " '" + o.text + "'" +
                     (o.first ? " first" : "") + (o.last ? " last" : "") + (o.end_of_turn ? " end" : "") + " kv " +
                     std::to_string(o.metrics.kv_cache_length) + " in " + std::to_string(o.used.input_text) + "+" +
                     std::to_string(o.used.input_audio) + "+" + std::to_string(o.used.input_vision) + " out " +
                     std::to_string(o.used.output_text) + "+" + std::to_string(o.used.output_audio) + " slides " +
                     std::to_string(o.metrics.window_events) + " cut " + std::to_string(static_cast<int>(c.cut)) +
                     (c.forced ? " forced" : "") + (c.voice_open ? " open" : "") + " owed " +
                     std::to_string(c.owed_text) + " drawn";
  for (auto t : c.drawn) text += " " + std::to_string(t);
  text += " remembered";
  for (auto t : c.remembered) text += " " + std::to_string(t);
  text += " spoken";
  for (auto t : c.spoken) text += " " + std::to_string(t);
  for (const auto& stream : {c.after.text, c.after.speech, c.after.noise}) text += " " + std::to_string(stream[0]);
  return text;
}

/// The margin of the first draw of speech that came out differently, if all before it is alike.
std::optional<double> first_difference(const std::vector<token_id>& drawn, const std::vector<token_id>& original,
                                       const std::vector<double>& margins) {
  const auto [a, b] = std::mismatch(drawn.begin(), drawn.end(), original.begin(), original.end());
  const auto place = static_cast<std::size_t>(b - original.begin());
  if (a == drawn.end() || b == original.end() || place >= margins.size()) return std::nullopt;
  return margins[place];
}

struct comparison {
  int units = 0;
  int too_close = 0; ///< a draw of speech went the other way, and could
  float sound = 0;

  /// False when there is nothing more to compare.
  bool add(const answered& mine, const answered& original) {
    ++units;
    if (!mine.deltas.empty() && !original.deltas.empty()) {
      const auto &a = *mine.deltas.back().choices, &b = *original.deltas.back().choices;
      const auto margin = first_difference(a.spoken, b.spoken, original.margins);
      if (margin && *margin < sure && a.drawn == b.drawn) {
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
    INFO("sound differs by " << sound);
    CHECK(sound <= same_sound);
    CHECK(too_close * 10 <= units); // else this shows nothing
  }
};

/// Loses the session before each of these units and goes on elsewhere.
void lose_and_go_on(const original& o, const std::vector<int>& points, int onwards = 4) {
  comparison all;
  for (auto end : points) {
    INFO("seed " << o.c.seed << ", lost before unit " << end);
    house h(1, o.c.context, o.c.how, 99, o.c.to);
    replay(o, h, end);
    for (auto u = end; u < std::min(end + onwards, o.c.units); ++u)
      if (!all.add(play(h, unit_of(o.c, u), found, cut_after(o.c, u)), o.told[u])) break;
    h.check_empty({found});
  }
}

/// Speaks from the first unit on.
duplex_options talkative(int number) {
  auto o = lively(number);
  o.force_listen_count = 0;
  o.window = window_mode::off;
  return o;
}

std::vector<int> every(int units, int step = 1) {
  std::vector<int> points;
  for (auto u = 1; u < units; u += step) points.push_back(u);
  return points;
}

template<class Holds>
int count_units(const original& o, Holds holds) {
  return static_cast<int>(std::count_if(o.told.begin(), o.told.end(),
                                        [&](const auto& a) { return !a.deltas.empty() && holds(a.deltas.back()); }));
}

bool sounds(const step_output& o) {
  return o.audio != nullptr;
}

} // namespace

TEST_CASE("a session that speaks goes on elsewhere, wherever it was lost") {
  auto sounding = 0, ends = 0, inside = 0;
  for (std::uint64_t seed : {5, 6, 7}) {
    const original o({.options = talkative(static_cast<int>(seed) % 4), .seed = seed});
    sounding += count_units(o, sounds);
    ends += count_units(o, [](const auto& d) { return d.end_of_turn; });
    inside += count_units(o, [](const auto& d) { return d.choices->voice_open; });
    lose_and_go_on(o, every(o.c.units, 2));
  }
  CHECK(sounding > 12);
  CHECK(ends > 2);
  CHECK(inside > 6);
}

TEST_CASE("a session that writes goes on elsewhere") {
  for (std::uint64_t seed : {1, 2, 3}) {
    auto options = lively(static_cast<int>(seed) % 3);
    options.sampling.greedy = false;
    const original o({.options = options, .seed = seed, .to = able::to_write});
    lose_and_go_on(o, every(o.c.units, 3));
  }
}

TEST_CASE("cuts and commands to listen in the past are replayed") {
  auto before = 0, deciding = 0, speaking = 0;
  for (std::uint64_t seed : {3, 4, 5}) {
    const original o({.options = talkative(2), .seed = seed, .units = 20, .forced = {6, 13}, .cuts = seed});
    for (const auto& a : o.told) {
      const auto& c = *a.deltas.back().choices;
      before += c.forced;
      deciding += c.cut == cut_point::deciding;
      speaking += c.cut == cut_point::speaking;
    }
    lose_and_go_on(o, every(o.c.units, 3));
  }
  CHECK(before > 3);
  CHECK(deciding > 3);
  CHECK(speaking > 3);
}

TEST_CASE("the reference's own ways are replayed too") {
  auto options = talkative(2);
  options.listen_top_k = 2;
  auto speaking = 0;
  for (std::uint64_t seed : {2, 3, 4}) {
    const original o(
        {.options = options, .seed = seed, .units = 18, .how = quirks::literal(), .forced = {6}, .cuts = 10 + seed});
    speaking += count_units(o, [](const auto& d) { return d.choices->cut == cut_point::speaking; });
    lose_and_go_on(o, every(o.c.units, 3));
  }
  CHECK(speaking > 0);
}

TEST_CASE("a cache that has slid slides again") {
  for (auto mode : {window_mode::basic, window_mode::context}) {
    auto options = talkative(1);
    options.window = mode;
    options.window_high_tokens = 150;
    options.window_low_tokens = 100;
    const original o({.options = options, .seed = 4, .units = 30});
    CHECK(o.told.back().deltas.back().metrics.window_events > 0);
    lose_and_go_on(o, {9, 17, 26});
  }
}

TEST_CASE("pictures are seen again") {
  auto options = talkative(1);
  const original o({.options = options, .seed = 8, .units = 9, .seen = true});
  CHECK(count_units(o, [](const auto& d) { return d.metrics.vision_slices > 0; }) > 2);
  lose_and_go_on(o, {2, 5, 8});
}

TEST_CASE("a unit that failed leaves no trace") {
  const original o({.options = talkative(1), .seed = 5, .units = 10, .broken = {2, 6}});
  CHECK(o.told[2].deltas.empty());
  CHECK(o.told[6].deltas.empty());
  lose_and_go_on(o, {3, 5, 7, 9}, 3);
}

TEST_CASE("a unit whose text has left is answered with its sound alone") {
  auto resumed = 0, first_of_turn = 0, cuts = 0;
  comparison rests, next;
  for (std::uint64_t seed : {5, 6}) {
    const original o({.options = talkative(static_cast<int>(seed) % 4), .seed = seed, .units = 10});
    for (auto u = 1; u < o.c.units; ++u) {
      const auto& whole = o.told[u].deltas;
      if (whole.size() != 2) continue;
      INFO("seed " << seed << ", unit " << u);
      const auto& said = *whole.front().choices;
      CHECK_FALSE(said.finished);
      first_of_turn += !said.spoken.empty();
      house h(1, o.c.context, {}, 99, o.c.to);
      replay(o, h, u);
      auto order = unit_of(o.c, u);
      order.replay = whole.front().choices;
      const auto rest = play(h, order, found, std::nullopt);
      REQUIRE(rest.deltas.size() == 1);
      CHECK(rest.deltas[0].kind == output_kind::audio);
      CHECK_FALSE(rest.deltas[0].first);
      ++resumed;
      if (!rests.add(rest, {{whole[1]}, o.told[u].margins})) continue;
      if (u + 1 < o.c.units) next.add(play(h, unit_of(o.c, u + 1), found, std::nullopt), o.told[u + 1]);

      house cut_short(1, o.c.context, {}, 99, o.c.to);
      replay(o, cut_short, u);
      const auto stopped = play(cut_short, order, found, u % 3);
      REQUIRE(stopped.deltas.size() == 1);
      CHECK(stopped.deltas[0].kind == output_kind::listen);
      CHECK_FALSE(stopped.deltas[0].first);
      CHECK(stopped.deltas[0].choices->cut == cut_point::speaking);
      ++cuts;
    }
  }
  CHECK(resumed > 5);
  CHECK(first_of_turn > 0);
  CHECK(first_of_turn < resumed);
  CHECK(cuts > 5);
}

TEST_CASE("a unit that was lost before it said anything is answered as it would have been") {
  const original o({.options = talkative(2), .seed = 6, .units = 8});
  house h(1, o.c.context, {}, 99, o.c.to);
  replay(o, h, 5);
  auto order = unit_of(o.c, 5);
  order.session = found;
  h.engine.handle(order); // and this engine is lost as well
  h.engine.advance();
  house again(1, o.c.context, {}, 98, o.c.to);
  replay(o, again, 5);
  comparison{}.add(play(again, unit_of(o.c, 5), found, std::nullopt), o.told[5]);
}

TEST_CASE("choices of another unit are refused, and the session is as before") {
  const original o({.options = talkative(2), .seed = 6, .units = 6, .to = able::to_write});
  house h(1, o.c.context, {}, 99, o.c.to);
  replay(o, h, 3);
  auto wrong = std::make_shared<unit_choices>(*o.told[3].deltas.back().choices);
  wrong->drawn.insert(wrong->drawn.begin(), 3, 40);
  wrong->forced = true;
  auto order = unit_of(o.c, 3);
  order.session = found;
  order.replay = wrong;
  h.engine.handle(order);
  h.run();
  CHECK(h.all<failed>().size() == 1);
  h.events.clear();
  comparison{}.add(play(h, unit_of(o.c, 3), found, std::nullopt), o.told[3]);
}

// ---- chat -------------------------------------------------------------------------------------------------------------

namespace {

struct heard {
  std::string text;
  std::vector<float> sound;
  turn_choices so_far;
  std::optional<chat_done> done;
};

void listen(heard& to, const event& e) {
  if (const auto* d = std::get_if<chat_delta>(&e)) {
    to.text += d->text;
    if (d->audio) to.sound.insert(to.sound.end(), d->audio->begin(), d->audio->end());
    to.so_far.drawn.insert(to.so_far.drawn.end(), d->drawn.begin(), d->drawn.end());
    to.so_far.spoken.insert(to.so_far.spoken.end(), d->spoken.begin(), d->spoken.end());
    to.so_far.text_bytes = to.text.size();
    to.so_far.samples = to.sound.size();
  }
  if (const auto* d = std::get_if<chat_done>(&e)) to.done = *d;
}

submit_turn question(std::uint64_t turn, bool tts, bool streaming) {
  auto t = ask(lost, turn, "Tell me something, number " + std::to_string(turn), 50);
  t.tts = tts;
  t.streaming = streaming;
  t.length_penalty = 3;
  return t;
}

/// Three turns; the second one is lost after each of some numbers of events, and goes on elsewhere, the third follows.
void lose_chat(bool tts, bool streaming) {
  const auto run_turn = [](house& h, submit_turn t, session_id as) {
    t.session = as;
    h.events.clear();
    h.engine.handle(std::move(t));
    h.run();
    heard all;
    for (const auto& e : h.events) listen(all, e);
    return all;
  };
  house h(1, 2048, {}, 5, able::to_speak);
  h.engine.handle(open_chat{lost, 31});
  const auto first = run_turn(h, question(1, tts, streaming), lost);
  h.speech_margins.clear();
  const auto second_turn = run_turn(h, question(2, tts, streaming), lost);
  const auto margins = std::exchange(h.speech_margins[lost], {});
  const auto events = h.events;
  const auto third = run_turn(h, question(3, tts, streaming), lost);
  REQUIRE(first.done);
  REQUIRE(second_turn.done);
  CHECK(events.size() > 10);
  auto worst = 0.0F;
  auto moves = 0, too_close = 0;
  for (std::size_t end = 0; end < events.size(); end += 7) {
    INFO("lost after " << end << " of " << events.size() << " events");
    heard so_far;
    for (std::size_t i = 0; i < end; ++i) listen(so_far, events[i]);
    house other(1, 2048, {}, 6, able::to_speak);
    other.engine.handle(open_chat{found, 31, first.done->after});
    auto t = question(2, tts, streaming);
    t.session = found;
    if (end > 0) t.replay = std::make_shared<const turn_choices>(so_far.so_far);
    other.events.clear();
    other.engine.handle(std::move(t));
    other.run();
    for (const auto& e : other.events) listen(so_far, e);
    REQUIRE(so_far.done);
    CHECK(so_far.text == second_turn.text);
    ++moves;
    if (const auto margin = first_difference(so_far.so_far.spoken, second_turn.so_far.spoken, margins);
        margin && *margin < sure) {
      ++too_close;
      std::cout << "replay: a draw of speech with a margin of " << *margin << " went the other way\n";
      continue;
    }
    CHECK(so_far.done->text == second_turn.done->text);
    CHECK(so_far.done->reason == second_turn.done->reason);
    CHECK(so_far.done->used.output_text == second_turn.done->used.output_text);
    CHECK(so_far.done->used.output_audio == second_turn.done->used.output_audio);
    CHECK(so_far.done->after.text == second_turn.done->after.text);
    CHECK(so_far.done->after.speech == second_turn.done->after.speech);
    CHECK(so_far.so_far.drawn == second_turn.so_far.drawn);
    CHECK(so_far.so_far.spoken == second_turn.so_far.spoken);
    const auto next = run_turn(other, question(3, tts, streaming), found);
    CHECK(next.text == third.text);
    for (const auto& [a, b] : {std::pair{so_far.sound, second_turn.sound}, std::pair{next.sound, third.sound}}) {
      REQUIRE(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
    }
    worst = std::max(worst, difference(so_far.done->audio, second_turn.done->audio));
    other.check_empty({found});
  }
  INFO("sound differs by " << worst);
  CHECK(worst <= same_sound);
  CHECK(too_close * 4 <= moves); // else this shows nothing
  CHECK((second_turn.sound.empty() && !second_turn.done->audio) == !tts);
}

} // namespace

TEST_CASE("a chat answer goes on elsewhere behind what was told") {
  lose_chat(false, true);
}

TEST_CASE("a chat answer that is heard goes on elsewhere, no sample twice and none left out") {
  lose_chat(true, true);
}

TEST_CASE("a chat answer that is heard at its end is heard whole") {
  lose_chat(true, false);
}

TEST_CASE("a chat turn that fails leaves chance where it was") {
  house h(2, 2048, {}, 5, able::to_write), undisturbed(1, 2048, {}, 5, able::to_write);
  for (auto* of : {&h, &undisturbed}) of->engine.handle(open_chat{lost, 31});
  auto bad = ask(lost, 1, "x");
  bad.messages.clear();
  h.engine.handle(std::move(bad));
  for (auto* of : {&h, &undisturbed}) {
    of->engine.handle(ask(lost, 2, "Hello?"));
    of->run();
  }
  CHECK(h.all<failed>().size() == 1);
  CHECK(h.all<chat_done>().at(0).text == undisturbed.all<chat_done>().at(0).text);
}

// ---- how long it takes ------------------------------------------------------------------------------------------------

TEST_CASE("five minutes are back in seconds", "[.][measure]") {
  const original o({.options = talkative(1), .seed = 5, .units = 300, .context = 8192});
  house h(1, 8192, {}, 99, able::to_speak);
  const auto begin = std::chrono::steady_clock::now();
  replay(o, h, o.c.units);
  const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  WARN(count_units(o, [](const auto& d) { return d.kind != output_kind::listen; })
       << " of 300 units speak, " << o.told.back().deltas.back().metrics.kv_cache_length
       << " rows in the cache; replayed in " << took << " s");
}
