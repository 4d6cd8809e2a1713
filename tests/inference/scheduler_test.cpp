#include "inference/engine/scheduler.hpp"

#include "base/assert.hpp"
#include "inference/engine/capacity.hpp"
#include "inference/engine/isolate.hpp"
#include "inference/llm/page_table.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <stdexcept>

using namespace parley::inference;
using namespace std::chrono_literals;

namespace {

ready_session waits(session_id id, stage where, int arrival_ms, std::int64_t rows = 0, bool divisible = false) {
  return {id, where, std::chrono::steady_clock::time_point(std::chrono::milliseconds(arrival_ms + 1000)), rows,
          divisible};
}

} // namespace

TEST_CASE("a pass takes the earliest deadlines first") {
  std::vector<ready_session> ready{waits(1, stage::hear, 30),  waits(2, stage::hear, 10), waits(3, stage::hear, 20),
                                   waits(4, stage::decode, 5), waits(5, stage::idle, 0),  waits(6, stage::hear, 10)};
  auto plan = schedule_pass(ready, {.sounds = 3});
  CHECK(plan.hear == std::vector<session_id>{2, 6, 3});
  CHECK(plan.decode == std::vector<session_id>{4});
  CHECK(plan.prefill.empty());
}

TEST_CASE("prompts are cut and share a pass, units are whole and never wait for them") {
  std::vector<ready_session> ready{waits(1, stage::prefill, 0, 1000, true), waits(2, stage::prefill, 1, 50, true),
                                   waits(3, stage::prefill, 900, 13), waits(4, stage::clips, 7),
                                   waits(5, stage::clips, 3)};
  const pass_limits limits{.prompt_rows = 256, .prompt_rows_beside = 64};
  auto plan = schedule_pass(ready, limits);
  REQUIRE(plan.prefill.size() == 2);
  CHECK(plan.prefill[0].session == 1);
  CHECK(plan.prefill[0].rows == 64);
  CHECK(plan.prefill[1].session == 3);
  CHECK(plan.prefill[1].rows == 13);
  CHECK(plan.clips == session_id{5});
  ready[0].rows = 40;
  plan = schedule_pass(ready, limits);
  REQUIRE(plan.prefill.size() == 3);
  CHECK(plan.prefill[1].session == 2);
  CHECK(plan.prefill[1].rows == 24);

  // No other session that listens or speaks is waiting for this pass.
  ready.erase(ready.begin() + 2);
  ready[0].rows = 200;
  plan = schedule_pass(ready, limits);
  REQUIRE(plan.prefill.size() == 2);
  CHECK(plan.prefill[0].rows == 200);
  CHECK(plan.prefill[1].rows == 50);
  for (const auto at : {stage::hear, stage::decode, stage::speak, stage::sound}) {
    ready.push_back(waits(9, at, 900));
    CHECK(schedule_pass(ready, limits).prefill[0].rows == 64);
    ready.pop_back();
  }
}

TEST_CASE("speech tokens are chosen for all, sound is made for the most urgent; who waits for a voice is left alone") {
  std::vector<ready_session> ready{waits(1, stage::speak, 9), waits(2, stage::sound, 5), waits(3, stage::sound, 1),
                                   waits(4, stage::sound, 3), waits(5, stage::voice, 0), waits(1, stage::decode, 9)};
  const auto plan = schedule_pass(ready, {.windows = 2});
  CHECK(plan.speak == std::vector<session_id>{1});
  CHECK(plan.decode == std::vector<session_id>{1}); // a chat answer continues decoding while it speaks
  CHECK(plan.sound == std::vector<session_id>{3, 4});
}

TEST_CASE("pieces of pictures share a pass up to its limit") {
  std::vector<ready_session> ready{waits(1, stage::see, 20, 10), waits(2, stage::see, 10, 3),
                                   waits(3, stage::see, 30, 2), waits(4, stage::look, 0)};
  auto plan = schedule_pass(ready, {.pieces = 8});
  REQUIRE(plan.see.size() == 2);
  CHECK(plan.see[0].session == 2);
  CHECK(plan.see[0].rows == 3);
  CHECK(plan.see[1].session == 1);
  CHECK(plan.see[1].rows == 5);
}

TEST_CASE("one bad member of a batch fails alone") {
  std::set<int> failures;
  auto calls = 0;
  auto call = [&](std::span<int> batch) {
    ++calls;
    for (auto member : batch)
      if (member == 3) throw std::runtime_error("three");
  };
  auto done = run_isolated(std::vector{1, 2, 3, 4}, call, [&](int member, const char* what) {
    CHECK(std::string(what) == "three");
    failures.insert(member);
  });
  CHECK(done == std::vector{1, 2, 4});
  CHECK(failures == std::set{3});
  CHECK(calls == 5);
  calls = 0;
  CHECK(run_isolated(std::vector{1, 2}, call, [](int, const char*) { FAIL(); }).size() == 2);
  CHECK(calls == 1);
  CHECK(run_isolated(std::vector<int>{}, call, [](int, const char*) { FAIL(); }).empty());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // sanitized builds abort here
TEST_CASE("an invariant that breaks for one member of a batch fails that member alone") {
  parley::base::set_violation_handler([](const parley::base::assertion_site&) noexcept {});
  std::set<int> failures;
  const auto call = [](std::span<int> batch) {
    for (const auto member : batch) PARLEY_ASSERT(member != 3, "nobody is three");
  };
  const auto done = run_isolated(std::vector{1, 2, 3, 4}, call, [&](int member, const char* what) {
    CHECK(std::string(what) == "nobody is three (member != 3)");
    failures.insert(member);
  });
  CHECK(done == std::vector{1, 2, 4});
  CHECK(failures == std::set{3});
  parley::base::set_violation_handler(nullptr);
}
#endif

TEST_CASE("pages are handed out in runs and all come back") {
  llm::page_table table(12, 4);
  auto a = *table.take(-1), b = *table.take(-1), c = *table.take(-1);
  CHECK(a == 0);
  CHECK(b == 4);
  CHECK(c == 8);
  CHECK(*table.take(a) == 1);
  CHECK(*table.take(b) == 5);
  std::set<int> all{0, 1, 4, 5, 8};
  auto last = 1;
  while (auto page = table.take(last)) {
    CHECK(all.insert(*page).second);
    last = *page;
  }
  CHECK(all.size() == 12);
  CHECK(table.free() == 0);
  for (auto page : all) table.give_back(page);
  CHECK(table.free() == 12);
}

TEST_CASE("a page is free when its last holder has gone; what stays alone lies in the back") {
  llm::page_table table(8, 4);
  const auto a = *table.take(-1);
  table.share(a);
  CHECK(table.shared(a));
  table.give_back(a);
  CHECK_FALSE(table.shared(a));
  CHECK(table.free() == 7);
  CHECK(*table.take_apart() == 7);
  CHECK(*table.take(-1) == 4);
  CHECK(*table.take(-1) == 2); // both homes are in use, so the middle of 1, 2, 3
  table.give_back(a);
  CHECK(table.free() == 5);
}

TEST_CASE("windows wait for company while there is other work, but not for long") {
  const auto at = [](int ms) { return std::chrono::steady_clock::time_point(std::chrono::milliseconds(ms)); };
  const pass_limits limits{.gather_sounds = 30ms, .gather_windows = 300ms};
  const auto with = [&](std::vector<ready_session> ready, int ms) { return schedule_pass(ready, limits, at(ms)); };
  const auto one = waits(1, stage::sound, 100), other = waits(2, stage::sound, 250);
  const auto decodes = waits(3, stage::decode, 0);
  CHECK(with({one, other, decodes}, 399).sound.empty());
  CHECK(with({one, other, decodes}, 399).decode.size() == 1);
  CHECK(with({one, other, decodes}, 400).sound == std::vector<session_id>{1, 2}); // the first one's patience takes both
  CHECK(with({one, other}, 260).sound.size() == 2);                               // there is nothing else to do
  CHECK(with({one, waits(1, stage::decode, 100)}, 260).sound.size() == 1);        // nor for anybody else
  CHECK(with({one, waits(3, stage::prefill, 0, 500, true)}, 260).sound.size() == 1); // a prompt is no company
  auto chat = decodes;
  chat.background = true;
  CHECK(with({one, chat}, 260).sound.size() == 1); // nor is an answer to a chat, which may take a minute
  CHECK(with({waits(4, stage::hear, 100), chat}, 120).hear.size() == 1);
  CHECK(with({waits(4, stage::hear, 100), decodes}, 120).hear.empty());
  CHECK(with({waits(4, stage::hear, 100), decodes}, 130).hear.size() == 1);
  CHECK(schedule_pass(std::vector{one, decodes}, {}, at(0)).sound.size() == 1); // the CPU does not wait
}

TEST_CASE("windows wait for company only while other work has its share of time") {
  const auto at = [](int ms) { return std::chrono::steady_clock::time_point(std::chrono::milliseconds(ms)); };
  const pass_limits limits{.gather_windows = 300ms};
  const std::vector ready{waits(1, stage::sound, 100), waits(2, stage::decode, 0)};
  CHECK(schedule_pass(ready, limits, at(149), nullptr, at(150)).sound.empty());
  CHECK(schedule_pass(ready, limits, at(150), nullptr, at(150)).sound.size() == 1);
  CHECK(schedule_pass(ready, limits, at(400), nullptr, at(900)).sound.size() == 1); // it has waited enough
  const std::vector ahead{waits(1, stage::sound, 100), waits(2, stage::decode, 900)};
  CHECK(schedule_pass(ahead, limits, at(149), nullptr, at(150)).sound.size() == 1); // nobody's work is due
}

TEST_CASE("slots follow memory and speed") {
  step_cost fast{0.01, 0.001};
  CHECK(find_capacity(fast, std::size_t{100} << 30, 1 << 20, 64).slots == 64);
  CHECK(find_capacity(fast, 10 << 20, 1 << 20, 64).slots == 10);
  CHECK(find_capacity({0.1, 0.1}, std::size_t{100} << 30, 1 << 20, 64).slots == 4);
  CHECK(find_capacity({3.0, 1.0}, 0, 1 << 20, 64).slots == 1);
}
