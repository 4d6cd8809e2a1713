#include "inference/engine/scheduler.hpp"
#include "inference/engine/work_ledger.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

// The scheduler on a machine that is nothing but a clock and a cost for each part of a pass.
using namespace parley::inference;
using namespace std::chrono_literals;

namespace {

using duration = background_share::duration;
using time_point = background_share::time_point;

constexpr time_point start{std::chrono::hours(1)};

/// What a call costs: a beginning, and each row.
struct price {
  duration begin, row;
};

/// A machine's prices; `slow` multiplies them all.
std::map<stage, price> prices(double slow) {
  std::map<stage, price> all{{stage::hear, {2ms, 2ms}},      {stage::see, {1ms, 25ms}},
                             {stage::clips, {0ms, 20ms}},    {stage::slide, {0ms, 3ms}},
                             {stage::prefill, {2ms, 200us}}, {stage::decode, {2ms, 500us}},
                             {stage::speak, {1ms, 700us}},   {stage::sound, {10ms, 25ms}}};
  for (auto& [at, cost] : all) {
    cost.begin = std::chrono::duration_cast<duration>(cost.begin * slow);
    cost.row = std::chrono::duration_cast<duration>(cost.row * slow);
  }
  return all;
}

/// A step of a session: a stage, and how many rows or times of it.
struct part {
  stage at;
  std::int64_t rows = 1;
  bool divisible = false;
};

/// Work that is done in order, for a unit or not.
struct job {
  time_point arrived, due;
  std::vector<part> parts;
};

std::vector<part> unit_parts(bool speaks, int pieces, int messages) {
  std::vector<part> parts{{stage::hear}};
  if (pieces > 0) parts.push_back({stage::see, pieces});
  if (messages > 0) parts.push_back({stage::prefill, messages, true});
  parts.push_back({stage::prefill, 13 + pieces * 66});
  for (auto i = 0; i < (speaks ? 10 : 2); ++i) parts.push_back({stage::decode});
  for (auto i = 0; i < (speaks ? 26 : 0); ++i) parts.push_back({stage::speak});
  if (speaks) parts.push_back({stage::sound});
  return parts;
}

struct person {
  session_id id;
  bool speaks;
  duration first; ///< when the first unit comes
  duration every = 1s;
  int pieces = 0, messages = 0;
};

/// Endless work of one owner.
struct owner {
  session_id id;
  part work;
  bool moved = false;
};

struct outcome {
  std::map<session_id, std::vector<duration>> latencies; ///< of each unit, from its arrival
  std::map<session_id, std::vector<duration>> spare;     ///< of each unit, until it is due
  std::map<session_id, duration> given;                  ///< to each owner
  std::map<session_id, duration> longest_wait;           ///< of each owner, between two parts
  duration longest_pass{0};
};

outcome simulate(const std::vector<person>& people, const std::vector<owner>& owners, double slow, duration lasts) {
  const auto cost = prices(slow);
  background_share share;
  pass_limits limits;
  outcome out;
  std::map<session_id, std::vector<job>> waiting; // oldest last
  for (const auto& p : people) {
    auto due = start;
    for (auto at = start + p.first; at < start + lasts; at += p.every) {
      due = std::max(at, due) + 1s;
      waiting[p.id].push_back({at, due, unit_parts(p.speaks, p.pieces, p.messages)});
    }
    std::ranges::reverse(waiting[p.id]);
  }
  std::map<session_id, time_point> last;
  for (const auto& o : owners) last[o.id] = start;
  auto now = start;
  const auto end = start + lasts + 3s; // so that the last units are answered, too
  while (now < end) {
    std::vector<ready_session> ready;
    auto next = end;
    for (auto& [id, jobs] : waiting) {
      if (jobs.empty()) continue;
      const auto& j = jobs.back();
      next = std::min(next, std::max(j.arrived, now + 1us));
      if (j.arrived > now) continue;
      const auto& p = j.parts.front();
      const auto more_than_once = p.at == stage::see || p.at == stage::prefill;
      ready.push_back(
          {id, p.at, j.due, more_than_once ? p.rows : 0, p.divisible, false, static_cast<int>(j.parts.size())});
    }
    for (const auto& o : owners)
      ready.push_back({o.id, o.work.at, start + 1s, o.work.rows, o.work.divisible, true, 1, o.moved});
    if (ready.empty()) {
      now = next;
      continue;
    }
    const auto plan = schedule_pass(ready, limits, now, &share);
    REQUIRE_FALSE(plan.empty());
    const auto begin = now;
    // As the engine runs a plan: one call a stage, and the language model's stages together.
    const auto call = [&](std::vector<planned_work> all, price of) {
      if (all.empty()) return;
      auto rows = std::int64_t{0};
      for (const auto& w : all) rows += w.rows;
      const auto took = of.begin + of.row * rows;
      std::vector<planned_work> paid;
      for (const auto& w : plan.paid)
        if (std::ranges::any_of(all, [&](const auto& a) { return a.session == w.session && a.at == w.at; }))
          paid.push_back(w);
      share.ran(all, paid, took);
      for (const auto& w : paid)
        if (last.contains(w.session)) out.given[w.session] += took * w.rows / rows;
      now += took;
    };
    const auto each = [](stage at, const std::vector<session_id>& ids) {
      std::vector<planned_work> all;
      for (auto id : ids) all.push_back({id, at, 1});
      return all;
    };
    const auto pieces = [](stage at, const std::vector<schedule::piece>& ids) {
      std::vector<planned_work> all;
      for (const auto& p : ids) all.push_back({p.session, at, p.rows});
      return all;
    };
    auto llm = pieces(stage::prefill, plan.prefill);
    for (auto w : each(stage::decode, plan.decode)) llm.push_back(w);
    std::vector<planned_work> all;
    const auto run = [&](std::vector<planned_work> works, stage at) {
      all.insert(all.end(), works.begin(), works.end());
      call(std::move(works), cost.at(at));
    };
    run(each(stage::hear, plan.hear), stage::hear);
    run(pieces(stage::see, plan.see), stage::see);
    if (plan.clips) run(each(stage::clips, {*plan.clips}), stage::clips);
    run(pieces(stage::slide, plan.slide), stage::slide);
    run(llm, plan.prefill.empty() ? stage::decode : stage::prefill);
    run(each(stage::speak, plan.speak), stage::speak);
    run(each(stage::sound, plan.sound), stage::sound);
    share.pass_over(plan.owners, plan.units, begin, now);
    out.longest_pass = std::max(out.longest_pass, now - begin);
    for (const auto& w : all) {
      if (last.contains(w.session)) {
        out.longest_wait[w.session] = std::max(out.longest_wait[w.session], now - last[w.session]);
        last[w.session] = now;
        continue;
      }
      auto& j = waiting[w.session].back();
      auto& p = j.parts.front();
      REQUIRE(p.at == w.at);
      p.rows -= w.rows;
      if (p.rows > 0) continue;
      j.parts.erase(j.parts.begin());
      if (!j.parts.empty()) continue;
      out.latencies[w.session].push_back(now - j.arrived);
      out.spare[w.session].push_back(j.due - now);
      waiting[w.session].pop_back();
    }
  }
  for (auto& [id, when] : last) out.longest_wait[id] = std::max(out.longest_wait[id], now - when);
  return out;
}

double ms(duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

owner endless(session_id id, unsigned kind) {
  switch (kind % 7) {
  case 0: return {id, {stage::prefill, 1 << 20, true}};
  case 1: return {id, {stage::see, 1 << 20}};
  case 2: return {id, {stage::clips}};
  case 3: return {id, {stage::decode}};
  case 4: return {id, {stage::speak}};
  case 5: return {id, {stage::sound}};
  default: return {id, {stage::prefill, 13}, true}; // a replay
  }
}

} // namespace

TEST_CASE("no unit that would be in time alone is late because of background, and background never starves") {
  std::mt19937 random(11);
  auto judged = 0, tight = 0;
  for (auto round = 0; round < 60; ++round) {
    const auto slow = std::vector{0.3, 1.0, 2.0, 3.0}[random() % 4];
    std::vector<person> people;
    for (session_id id = 1; id <= 1 + random() % 5; ++id)
      people.push_back({id, random() % 2 == 0, std::chrono::milliseconds(random() % 1000)});
    std::vector<owner> owners;
    for (session_id id = 101; id <= 101 + random() % 8; ++id) owners.push_back(endless(id, random()));
    const auto alone = simulate(people, {}, slow, 12s), beside = simulate(people, owners, slow, 12s);
    const auto most_part = [&] { // what can't be divided further, and runs once a unit is there
      auto most = duration(0);
      for (const auto& [at, cost] : prices(slow))
        most = std::max(most, cost.begin + cost.row * (at == stage::prefill ? 13 : 1));
      return most;
    }();
    for (const auto& [id, spare] : alone.spare) {
      const auto& with = beside.spare.contains(id) ? beside.spare.at(id) : std::vector<duration>();
      for (auto i = std::size_t{0}; i < spare.size(); ++i) {
        CAPTURE(round, slow, id, i, ms(spare[i]));
        // Less than this is what a unit may lose: a step that was running, and one each `longest_wait`.
        if (spare[i] < background_share::spare + 2 * (most_part + background_share::step_alone)) {
          ++tight;
          continue;
        }
        ++judged;
        REQUIRE(i < with.size());
        CHECK(ms(with[i]) >= 0);
      }
    }
    for (const auto& o : owners) {
      CAPTURE(round, slow, o.id, static_cast<int>(o.work.at), owners.size());
      // Its turn comes after the others', each of which may be given a quantum more than it, and a part.
      const auto turns =
          std::ssize(owners) * (background_share::quantum + most_part) / background_share::step_beside + 1;
      CHECK(ms(beside.longest_wait.at(o.id)) <= ms(turns * (background_share::longest_wait + beside.longest_pass)));
    }
  }
  CHECK(judged > 1000);
  CHECK(tight > 20);
}

TEST_CASE("where units are late whatever is done, moved sessions get a quarter, and nobody else") {
  std::vector<person> people;
  for (session_id id = 1; id <= 4; ++id) people.push_back({id, true, std::chrono::milliseconds(id * 200)});
  const std::vector<owner> owners{
      {101, {stage::prefill, 13}, true}, {102, {stage::decode}}, {103, {stage::prefill, 1 << 20, true}}};
  const auto out = simulate(people, owners, 4, 20s);
  const auto& late = out.spare.at(1);
  REQUIRE(ms(late.at(late.size() / 2)) < 0);    // there is more to do than time
  CHECK(ms(out.given.at(101)) > 0.1 * ms(20s)); // a quarter, but for passes that are longer than its pause
  CHECK(ms(out.given.at(101)) < 0.3 * ms(20s));
  CHECK(ms(out.given.at(102)) < 0.03 * ms(20s));
  CHECK(ms(out.given.at(103)) < 0.03 * ms(20s));
}

TEST_CASE("units that are heard and spoken lose little to any background") {
  for (auto kind = 0u; kind < 7; ++kind) {
    std::vector<person> people{{1, false, 0ms}, {2, true, 250ms}, {3, false, 500ms}, {4, true, 750ms}};
    std::vector<owner> owners;
    for (session_id id = 101; id < 109; ++id) owners.push_back(endless(id, kind));
    const auto alone = simulate(people, {}, 1, 20s), beside = simulate(people, owners, 1, 20s);
    for (const auto& p : people) {
      const auto worst = [&](const outcome& of) { return ms(*std::ranges::max_element(of.latencies.at(p.id))); };
      CAPTURE(kind, p.id, worst(alone), worst(beside));
      CHECK(worst(beside) <= worst(alone) + (p.speaks ? 200 : 100));
    }
    for (const auto& o : owners) CHECK(ms(beside.given.at(o.id)) > 200); // an eighth of a tenth of the time
  }
}

TEST_CASE("owners of background get equal shares, whatever their work is") {
  std::mt19937 random(5);
  for (const bool beside_units : {false, true})
    for (auto round = 0; round < 20; ++round) {
      std::vector<person> people;
      if (beside_units) people = {{1, true, 0ms}, {2, true, 500ms}};
      const std::vector<owner> owners{endless(101, random()), endless(102, random())};
      const auto out = simulate(people, owners, 1, 20s);
      const auto a = ms(out.given.at(101)), b = ms(out.given.at(102));
      CAPTURE(beside_units, static_cast<int>(owners[0].work.at), static_cast<int>(owners[1].work.at), a, b);
      CHECK(std::abs(a - b) <= ms(background_share::quantum) + 40);
      CHECK(a + b > (beside_units ? 4000 : 22000)); // alone, the machine is never idle
    }
}

TEST_CASE(
    "a part that takes longer than a pass may has its turn, and a session's sound comes before its further words") {
  background_share share;
  auto now = start;
  std::map<session_id, int> sounds, words;
  for (auto pass = 0; pass < 400; ++pass) {
    std::vector<ready_session> ready;
    for (session_id id = 1; id <= 3; ++id) ready.push_back({id, stage::decode, now, 0, false, true});
    for (session_id id = 2; id <= 3; ++id) ready.push_back({id, stage::sound, now, 0, false, true});
    const auto plan = schedule_pass(ready, {}, now, &share);
    REQUIRE_FALSE(plan.empty());
    const auto begin = now;
    for (const auto at : {stage::decode, stage::sound}) {
      std::vector<planned_work> all;
      for (const auto id : at == stage::decode ? plan.decode : plan.sound) {
        all.push_back({id, at, 1});
        ++(at == stage::decode ? words : sounds)[id];
      }
      const auto took = static_cast<int>(all.size()) * (at == stage::decode ? 3ms : 70ms);
      share.ran(all, plan.paid, took);
      now += took;
    }
    share.pass_over(plan.owners, due_units::none, begin, now);
  }
  for (session_id id = 2; id <= 3; ++id) CHECK(sounds[id] > 10);
  CHECK(words[1] > 400 * 2 / 3); // it has nothing else
}

TEST_CASE("a session that came later is not given what it did not ask for before") {
  background_share share;
  const std::vector<planned_work> work{{1, stage::clips, 1}};
  auto now = start;
  for (auto i = 0; i < 100; ++i, now += 20ms) {
    share.ran(work, work, 20ms);
    share.pass_over(std::vector<session_id>{1}, due_units::none, now, now + 20ms);
  }
  CHECK(share.served(1) - share.served(2) <= background_share::quantum);
}

TEST_CASE("a late unit is counted by what took most of its time") {
  work_ledger ledger;
  ledger.of(work_kind::unit) = 5s;
  ledger.of(work_kind::chat) = 9s;
  const auto begun = ledger.now();
  ledger.of(work_kind::unit) += 500ms; // its own and others'
  ledger.of(work_kind::chat) += 200ms;
  ledger.of(work_kind::replay) += 200ms;
  ledger.waited += 150ms;
  ledger.count_late(begun, 450ms);
  ledger.count_late(begun, 50ms);
  ledger.of(work_kind::unit) -= 400ms;
  ledger.count_late(begun, 50ms);
  ledger.waited += 1s;
  ledger.count_late(begun, 50ms);
  CHECK(ledger.late == std::array<std::uint64_t, late_causes>{1, 1, 1, 1});
}

TEST_CASE("units of a session that is ahead of its clock run only when nobody else has work") {
  const auto now = start;
  const ready_session due{1, stage::hear, now + 700ms}, ahead{2, stage::hear, now + 1300ms},
      nearly{3, stage::hear, now + 1250ms}, chat{4, stage::decode, now, 0, false, true};
  background_share share;
  const auto heard = [&](std::vector<ready_session> ready) { return schedule_pass(ready, {}, now, &share).hear; };
  CHECK(heard({due, ahead}) == std::vector<session_id>{1});
  CHECK(heard({due, nearly}) == std::vector<session_id>{1, 3});
  CHECK(heard({ahead}) == std::vector<session_id>{2});
  CHECK(heard({ahead, chat}).empty());
  // Six that send as fast as they are answered get what a microphone would.
  std::vector<person> people{{1, false, 0ms}, {2, true, 400ms}};
  for (session_id id = 11; id < 17; ++id) people.push_back({id, true, 0ms, 5ms});
  const auto alone = simulate({people[0], people[1]}, {}, 1, 6s), flooded = simulate(people, {}, 1, 6s);
  for (session_id id : {1, 2}) {
    const auto worst = [&](const outcome& of) { return ms(*std::ranges::max_element(of.latencies.at(id))); };
    CAPTURE(id, worst(alone), worst(flooded));
    CHECK(flooded.latencies.at(id).size() == alone.latencies.at(id).size());
    CHECK(worst(flooded) <= 1000);
  }
}
