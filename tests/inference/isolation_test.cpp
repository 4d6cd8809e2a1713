#include "tests/inference/engine_fixture.hpp"
#include "tests/inference/failing_memory.hpp"
#include "tests/inference/picture_files.hpp"
#include "tests/inference/sounds.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <set>

// Whatever throws inside the engine, and wherever: the session being worked for fails, and the others notice nothing.
using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

constexpr session_id victim = 1, second_victim = 2, bystander = 7;

/// While it lives, allocations are counted and may fail (true), or are left alone (false).
class counting {
public:
  explicit counting(bool counts) : before_(std::exchange(here.counts, counts)) {}
  ~counting() { here.counts = before_; }
  counting(const counting&) = delete;
  counting& operator=(const counting&) = delete;

private:
  bool before_;
};

/// An engine with a bystander's session, which faults must not affect.
struct scene {
  std::vector<event> events;
  std::function<void(const event&)> fault; ///< may throw when the engine reports something
  omni_engine engine;
  std::vector<std::string> told_to_bystander;
  int passes_that_threw = 0;

  explicit scene(int slots = 4)
      : engine(model(), voice_box(), llm::kv_pool(model()->config().llm, slots, 1024, at::kFloat, at::kCPU),
               options_for(slots, 1024, {}, 1, able::to_speak), [this](event&& e) {
                 const counting none(false); // the test's own allocations must not fail
                 if (fault) fault(e);
                 events.push_back(std::move(e));
               }) {
    duplex_options o = lively(1);
    o.force_listen_count = 0;
    give(open_duplex{bystander, "You are patient.", o, nullptr, nullptr, 5});
    talk(1);
  }

  void give(command order, bool faulty = false, int passes = -1) {
    {
      const counting now(faulty);
      engine.handle(std::move(order)); // must never throw
    }
    work(faulty, passes);
  }

  /// Runs that many passes, or all there are.
  void work(bool faulty, int passes = -1) {
    for (auto pass = 0, busy = 1; pass != passes && busy != 0; ++pass) {
      REQUIRE(pass < 20000);
      try {
        const counting now(faulty);
        busy = engine.advance();
      } catch (const std::bad_alloc&) { // thrown between the sessions' steps, so no session is to blame
        ++passes_that_threw;
      }
    }
  }

  void talk(int unit) { give(submit_unit{{second(unit), {}, 1, false}, bystander, static_cast<std::uint64_t>(unit)}); }

  std::vector<std::string> lines(session_id id) const {
    std::vector<std::string> result;
    for (const auto& e : events) {
      if (std::visit([](const auto& x) { return x.session; }, e) != id) continue;
      if (const auto* o = std::get_if<step_output>(&e)) {
        auto sum = 0.0;
        if (o->audio)
          for (auto x : *o->audio) sum = sum * 0.999 + x;
        result.push_back(std::to_string(o->unit) + ' ' + std::to_string(static_cast<int>(o->kind)) + o->text + ' ' +
                         std::to_string(o->metrics.kv_cache_length) + ' ' + std::to_string(sum));
      } else {
        result.push_back(std::to_string(e.index()));
      }
    }
    return result;
  }

  template<class T>
  bool has(session_id id, std::uint64_t number = 0) const {
    return std::ranges::any_of(events, [&](const event& e) {
      const auto* x = std::get_if<T>(&e);
      if (!x || x->session != id) return false;
      if constexpr (
          requires { x->unit; } && requires { x->last; })
        return x->unit == number && x->last;
      if constexpr (
          requires { x->unit; } && !requires { x->last; })
        return x->unit == number;
      if constexpr (requires { x->turn; }) return x->turn == number;
      if constexpr (requires { x->number; }) return x->number == number;
      return true;
    });
  }

  /// Whether everything that this command asked for was answered.
  bool answered(const command& order) const {
    const auto id = std::visit([](const auto& o) { return o.session; }, order);
    if (const auto* u = std::get_if<submit_unit>(&order))
      return has<step_output>(id, u->unit) || has<replayed>(id, u->unit) || has<failed>(id, u->unit);
    if (const auto* t = std::get_if<submit_turn>(&order))
      return has<chat_done>(id, t->turn) || has<failed>(id, t->turn);
    if (std::holds_alternative<close_session>(order)) return has<closed>(id);
    if (order.index() < 2) return has<opened>(id) || has<failed>(id);
    return true;
  }
};

/// One command of a script, and how many passes follow it.
struct deed {
  deed(command what, int passes_then = -1) : order(std::move(what)), passes(passes_then) {}

  command order;
  int passes; ///< before the next command; -1 = until idle
};

struct script {
  const char* name;
  std::vector<deed> deeds;
};

submit_unit unit_of(session_id id, std::uint64_t number) {
  return {{second(static_cast<int>(number) + 3), {}, 1, false}, id, number};
}

duplex_options talkative() {
  duplex_options o = lively(1);
  o.force_listen_count = 0;
  return o;
}

image_file picture() {
  static const auto file = std::make_shared<const std::string>(jpeg_file(gradient(96, 80)));
  return file;
}

pcm recording() {
  static const auto sound = std::make_shared<const std::vector<float>>(some_sound(1, 32000));
  return sound;
}

submit_turn spoken_turn(std::uint64_t number, bool streaming) {
  auto turn = ask(victim, number, "hello", 14);
  turn.tts = true;
  turn.streaming = streaming;
  return turn;
}

std::vector<script> scripts() {
  std::vector<script> all;
  auto add = [&](const char* name, std::vector<deed> deeds, std::vector<session_id> who = {victim}) {
    for (auto id : who) deeds.emplace_back(close_session{id});
    all.push_back({name, std::move(deeds)});
  };
  auto open = [](session_id id, duplex_options o, pcm voice = nullptr, pcm tts_voice = nullptr) {
    return deed{open_duplex{id, "You are kind.", o, std::move(voice), std::move(tts_voice), 7}};
  };
  add("talks and is cut", {open(victim, talkative()),
                           {unit_of(victim, 1)},
                           {unit_of(victim, 2), 3},
                           {cut{victim}},
                           {unit_of(victim, 3), 30},
                           {cut{victim}},
                           {unit_of(victim, 4), 0},
                           {unit_of(victim, 5)}});
  add("brings voices", {open(victim, talkative(), second(4), recording()), {unit_of(victim, 1)}});
  auto shows = unit_of(victim, 1);
  shows.frames = {picture(), picture()};
  add("shows pictures", {open(victim, talkative()), {shows}, {unit_of(victim, 2)}});
  for (auto mode : {window_mode::basic, window_mode::context}) {
    auto o = talkative();
    o.generate_audio = false;
    o.window = mode;
    o.window_high_tokens = 60;
    o.window_low_tokens = 40;
    std::vector<deed> deeds{open(victim, o)};
    for (std::uint64_t u = 1; u <= (mode == window_mode::basic ? 5 : 27); ++u) deeds.emplace_back(unit_of(victim, u));
    add(mode == window_mode::basic ? "slides" : "slides with context", std::move(deeds));
  }
  auto shared = open(victim, talkative());
  shared.passes = 0;
  add("shares a prompt", {shared, open(second_victim, talkative()), {unit_of(second_victim, 1)}},
      {victim, second_victim});
  auto looks = spoken_turn(1, true);
  looks.messages.front().content.emplace_back(image_item{picture()});
  looks.messages.front().content.emplace_back(audio_item{second(2)});
  looks.messages.front().content.emplace_back(video_item{{picture()}, second(3), 1});
  add("chats", {{open_chat{victim, 3}},
                {looks},
                {spoken_turn(2, true), 25},
                {cancel_turn{victim}},
                {ask(victim, 3, "and?", 5), 0},
                {spoken_turn(4, false)}});
  auto voiced = spoken_turn(1, false);
  voiced.tts_voice = recording();
  add("chats in a voice", {{open_chat{victim, 3}}, {voiced}});
  auto known = std::make_shared<turn_choices>();
  auto goes_on = spoken_turn(1, true);
  goes_on.replay = known;
  add("chats on", {{open_chat{victim, 3}}, {goes_on}});
  return all;
}

/// The recorded choices of a session that talks, replayed, and more units after them.
script replayed_talk() {
  scene s;
  script made{"goes on", {}};
  const command opening = open_duplex{victim, "You are kind.", talkative(), nullptr, nullptr, 7};
  s.give(opening);
  made.deeds.emplace_back(opening);
  for (std::uint64_t u = 1; u <= 4; ++u) {
    auto unit = unit_of(victim, u);
    s.give(unit);
    for (const auto& e : s.events)
      if (const auto* o = std::get_if<step_output>(&e); o && o->session == victim && o->unit == u && !unit.replay)
        if (o->last != (u == 4) || o->kind == output_kind::listen) unit.replay = o->choices;
    made.deeds.emplace_back(unit);
  }
  made.deeds.emplace_back(unit_of(victim, 5));
  made.deeds.emplace_back(close_session{victim});
  return made;
}

/// Plays the script, then the bystander continues.
void play(scene& s, const script& of, bool faulty) {
  for (const auto& deed : of.deeds) s.give(deed.order, faulty, deed.passes);
  here = {};
  s.fault = nullptr;
  s.work(false);
  s.talk(2);
  s.talk(3);
}

void check_bystander(scene& s, const std::vector<std::string>& undisturbed) {
  CHECK(s.lines(bystander) == undisturbed);
  for (session_id id : {victim, second_victim, bystander}) s.give(close_session{id});
  CHECK(s.engine.free_pages() == s.engine.capacity().kv_pages);
  CHECK_FALSE(s.engine.advance());
}

std::vector<std::string> undisturbed_bystander() {
  scene s;
  s.talk(2);
  s.talk(3);
  return s.lines(bystander);
}

} // namespace

TEST_CASE("memory that runs out in any step ends that session at most") {
  const auto undisturbed = undisturbed_bystander();
  auto all = scripts();
  all.push_back(replayed_talk());
  std::mt19937_64 random(1);
  const auto* dense = std::getenv("PARLEY_TEST_FAULTS");
  const auto trials = dense ? std::atoi(dense) : 16;
  for (const auto& script : all) {
    std::uint64_t asks = 0;
    {
      scene s;
      here = {};
      for (const auto& deed : script.deeds) {
        s.give(deed.order, true, deed.passes);
        if (deed.passes < 0) CHECK(s.answered(deed.order));
      }
      asks = here.asked;
      here = {};
      CHECK(s.passes_that_threw == 0);
      for (const auto& e : s.events)
        if (const auto* f = std::get_if<failed>(&e)) FAIL_CHECK(script.name << ": " << f->message);
      s.talk(2);
      s.talk(3);
      check_bystander(s, undisturbed);
    }
    auto failures = 0, unnoticed = 0, threw = 0;
    for (auto trial = 0; trial < trials; ++trial) {
      scene s;
      const auto at = random() % asks;
      // One allocation fails; or several in a row, so that even reporting the failure runs out of memory.
      const auto lasting = trial % 3 == 2;
      here = {};
      here.from = at;
      here.to = lasting ? at + 1 + random() % 40 : at + 1;
      INFO(script.name << ", allocation " << at << " of " << asks << ", none for " << here.to - here.from);
      play(s, script, true);
      if (!lasting)
        for (const auto& deed : script.deeds) CHECK(s.answered(deed.order));
      const auto failed_once =
          std::ranges::any_of(s.events, [](const event& e) { return std::holds_alternative<failed>(e); });
      failures += failed_once;
      unnoticed += !failed_once;
      threw += s.passes_that_threw > 0;
      check_bystander(s, undisturbed);
    }
    std::cout << "isolation: " << script.name << ": of " << asks << " allocations " << trials << " failed: " << failures
              << " sessions heard of it, " << unnoticed << " did not, " << threw << " between the sessions\n";
  }
}

TEST_CASE("whatever can't be told ends that session at most") {
  const auto undisturbed = undisturbed_bystander();
  auto all = scripts();
  all.push_back(replayed_talk());
  std::set<std::size_t> kinds;
  for (const auto& script : all)
    for (auto kind = std::size_t{0}; kind < std::variant_size_v<event>; ++kind)
      for (auto at : {0, 1})
        for (auto lasting : {false, true}) {
          scene s;
          auto told = 0;
          s.fault = [&](const event& e) {
            if (std::visit([](const auto& x) { return x.session; }, e) == bystander) return;
            if (e.index() == kind) ++told;
            if (told <= at || (!lasting && (told > at + 1 || e.index() != kind))) return;
            kinds.insert(e.index());
            throw std::runtime_error("nobody listens");
          };
          INFO(script.name << ", event " << kind << " number " << at << (lasting ? " and all after it" : ""));
          play(s, script, true);
          check_bystander(s, undisturbed);
          if (told <= at) break; // there are no more such events
        }
  CHECK(kinds == std::set<std::size_t>{0, 1, 2, 3, 4, 5, 6});
}
