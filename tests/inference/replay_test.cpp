#include "tests/inference/replay_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <random>

// A session taken over by another engine continues as if nothing had happened.
using namespace parley::inference;
using namespace parley::inference::testing;

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

TEST_CASE("a session that speaks goes on elsewhere among others, wherever it was lost") {
  comparison all;
  for (std::uint64_t seed : {5, 8}) {
    const original o({.options = talkative(static_cast<int>(seed) % 4), .seed = seed});
    for (auto end = 1; end < o.c.units; ++end) {
      const auto people = (end * 5 + static_cast<int>(seed)) % 8;
      INFO("seed " << seed << ", lost before unit " << end << ", " << people << " others");
      engine_fixture h(1 + people, o.c.context, o.c.how, 99, o.c.to);
      company others(h, people, o.c.context);
      replay(o, h, end, &others);
      for (auto u = end; u < std::min(end + 3, o.c.units); ++u) {
        others.speak();
        if (!all.add(play(h, unit_of(o.c, u), found, std::nullopt), o.told[u])) break;
      }
      others.leave();
      h.check_empty({found});
    }
  }
  std::cout << "replay: " << all.units << " seconds among others, " << all.draws << " draws of speech, " << all.close
            << " of them closer than " << sure << ", " << all.too_close
            << " went the other way; margins moved by at most " << all.moved << ", sound by " << all.sound << '\n';
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
      engine_fixture h(1, o.c.context, {}, 99, o.c.to);
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

      engine_fixture cut_short(1, o.c.context, {}, 99, o.c.to);
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
  engine_fixture h(1, o.c.context, {}, 99, o.c.to);
  replay(o, h, 5);
  auto order = unit_of(o.c, 5);
  order.session = found;
  h.engine.handle(order); // this engine is lost as well
  h.engine.advance();
  engine_fixture again(1, o.c.context, {}, 98, o.c.to);
  replay(o, again, 5);
  comparison{}.add(play(again, unit_of(o.c, 5), found, std::nullopt), o.told[5]);
}

TEST_CASE("choices of another unit are refused, and the session is as before") {
  const original o({.options = talkative(2), .seed = 6, .units = 6, .to = able::to_write});
  engine_fixture h(1, o.c.context, {}, 99, o.c.to);
  replay(o, h, 3);
  auto wrong = std::make_shared<unit_choices>(*o.told[3].deltas.back().choices);
  wrong->sampled.insert(wrong->sampled.begin(), 3, 40);
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

TEST_CASE("choices of tokens that the model does not have are refused before a table is asked for them") {
  const original o({.options = talkative(2), .seed = 6, .units = 6});
  engine_fixture h(1, o.c.context, {}, 99, o.c.to);
  replay(o, h, 3);
  const auto beyond = [&](std::vector<std::int64_t> unit_choices::*of, std::int64_t token) {
    auto wrong = std::make_shared<unit_choices>(*o.told[3].deltas.back().choices);
    ((*wrong).*of).push_back(token);
    auto order = unit_of(o.c, 3);
    order.session = found;
    order.replay = wrong;
    h.engine.handle(std::move(order));
    h.run();
    const auto refused = h.all<failed>();
    h.events.clear();
    return refused.size() == 1 && refused[0].kind == failure_kind::invalid && refused[0].number == 3;
  };
  for (const auto of : {&unit_choices::sampled, &unit_choices::remembered, &unit_choices::spoken})
    for (const auto token : {std::int64_t{-1}, std::int64_t{1} << 19}) CHECK(beyond(of, token));
  comparison{}.add(play(h, unit_of(o.c, 3), found, std::nullopt), o.told[3]);
}

// ---- chat

namespace {

struct heard {
  std::string text;
  std::vector<float> sound;
  std::vector<std::string> scored; ///< the tokens of which was told how likely they were
  std::string calls;               ///< their pieces
  turn_choices so_far;
  std::optional<chat_done> done;
};

void listen(heard& to, const event& e) {
  if (const auto* d = std::get_if<chat_delta>(&e)) {
    to.text += d->text;
    if (d->audio) to.sound.insert(to.sound.end(), d->audio->begin(), d->audio->end());
    to.so_far.sampled.insert(to.so_far.sampled.end(), d->sampled.begin(), d->sampled.end());
    to.so_far.spoken.insert(to.so_far.spoken.end(), d->spoken.begin(), d->spoken.end());
    to.so_far.text_bytes = to.text.size();
    to.so_far.samples = to.sound.size();
    for (const auto& each : d->scores) to.scored.push_back(each.chosen.bytes);
    to.so_far.scores = to.scored.size();
    for (const auto& each : d->calls) to.calls += each.name + each.arguments;
    to.so_far.call_pieces += d->calls.size();
  }
  if (const auto* d = std::get_if<chat_done>(&e)) {
    to.done = *d;
    for (const auto& each : d->scores) to.scored.push_back(each.chosen.bytes);
  }
}

submit_turn question(std::uint64_t turn, bool tts, bool streaming, bool calls) {
  auto t = ask(lost, turn, "Tell me something, number " + std::to_string(turn), 50);
  t.tts = tts;
  t.streaming = streaming;
  t.length_penalty = 3;
  t.scored = 1;
  if (calls) {
    t.tools = {{"f", R"({"type": "function", "function": {"name": "f"}})", ""}};
    t.tool_required = t.call_pieces = true;
  }
  return t;
}

/// Three turns. The second one is lost after various numbers of events and continues on another engine; then the third.
void lose_chat(bool tts, bool streaming, bool calls = false) {
  const auto run_turn = [](engine_fixture& h, submit_turn t, session_id as) {
    t.session = as;
    h.events.clear();
    h.engine.handle(std::move(t));
    h.run();
    heard all;
    for (const auto& e : h.events) listen(all, e);
    return all;
  };
  engine_fixture h(1, 2048, {}, 5, able::to_speak);
  h.engine.handle(open_chat{lost, 31});
  const auto first = run_turn(h, question(1, tts, streaming, calls), lost);
  h.draws->speech_margins.clear();
  const auto second_turn = run_turn(h, question(2, tts, streaming, calls), lost);
  const auto margins = std::exchange(h.draws->speech_margins[lost], {});
  const auto events = h.events;
  const auto third = run_turn(h, question(3, tts, streaming, calls), lost);
  REQUIRE(first.done);
  REQUIRE(second_turn.done);
  CHECK(events.size() > 10);
  CHECK(second_turn.scored.empty() == calls);
  CHECK(second_turn.calls.empty() == !calls);
  auto worst = 0.0F;
  auto moves = 0, too_close = 0;
  for (std::size_t end = 0; end < events.size(); end += 7) {
    INFO("lost after " << end << " of " << events.size() << " events");
    heard so_far;
    for (std::size_t i = 0; i < end; ++i) listen(so_far, events[i]);
    engine_fixture other(1, 2048, {}, 6, able::to_speak);
    other.engine.handle(open_chat{found, 31, first.done->after});
    auto t = question(2, tts, streaming, calls);
    t.session = found;
    if (end > 0) t.replay = std::make_shared<const turn_choices>(so_far.so_far);
    other.events.clear();
    other.engine.handle(std::move(t));
    other.run();
    for (const auto& e : other.events) listen(so_far, e);
    REQUIRE(so_far.done);
    CHECK(so_far.text == second_turn.text);
    CHECK(so_far.scored == second_turn.scored);
    CHECK(so_far.calls == second_turn.calls);
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
    CHECK(so_far.so_far.sampled == second_turn.so_far.sampled);
    CHECK(so_far.so_far.spoken == second_turn.so_far.spoken);
    const auto next = run_turn(other, question(3, tts, streaming, calls), found);
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

TEST_CASE("a call that comes in pieces goes on elsewhere behind what was told") {
  lose_chat(false, true, true);
}

TEST_CASE("a chat answer with tokens that the model does not have is refused") {
  engine_fixture h(1, 2048, {}, 5, able::to_speak);
  h.engine.handle(open_chat{lost, 31});
  for (const bool spoken : {false, true}) {
    auto order = ask(lost, 1, "Hello?");
    auto choices = std::make_shared<turn_choices>();
    (spoken ? choices->spoken : choices->sampled).push_back(std::int64_t{1} << 19);
    order.replay = choices;
    h.engine.handle(std::move(order));
  }
  h.run();
  const auto refused = h.all<failed>();
  REQUIRE(refused.size() == 2);
  for (const auto& each : refused) CHECK(each.kind == failure_kind::invalid);
}

TEST_CASE("a chat turn that fails leaves chance where it was") {
  engine_fixture h(2, 2048, {}, 5, able::to_write), undisturbed(1, 2048, {}, 5, able::to_write);
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

// ---- how long it takes

TEST_CASE("five minutes are back in seconds", "[.][measure]") {
  const original o({.options = talkative(1), .seed = 5, .units = 300, .context = 8192});
  engine_fixture h(1, 8192, {}, 99, able::to_speak);
  const auto begin = std::chrono::steady_clock::now();
  replay(o, h, o.c.units);
  const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  WARN(count_units(o, [](const auto& d) { return d.kind != output_kind::listen; })
       << " of 300 units speak, " << o.told.back().deltas.back().metrics.kv_cache_length
       << " rows in the cache; replayed in " << took << " s");
}
