#include "inference/engine/slot_estimate.hpp"

#include "inference/engine/idle_measurement.hpp"
#include "inference/engine/pace_meter.hpp"
#include "tests/inference/engine_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>
#include <vector>

using namespace parley::inference;
using namespace std::chrono_literals;

namespace {

constexpr step_cost measured{0.02, 0.01}; // 48 sessions take half a second

/// A second in which `sessions` sessions talked, and each unit cost `pace` times what was measured.
pace_sample second_of(int sessions, double pace, int late = 0) {
  return {1, (measured.fixed_seconds + measured.session_seconds * sessions) * pace, sessions, late, sessions};
}

int after(slot_estimate& e, int seconds, const pace_sample& each) {
  for (auto i = 0; i < seconds; ++i) e.add(each);
  return e.slots();
}

} // namespace

TEST_CASE("slots begin with what was measured and with what memory holds") {
  CHECK(slot_estimate(measured, 64).slots() == 48);
  CHECK(slot_estimate(measured, 20).slots() == 20);
  CHECK(slot_estimate({3, 1}, 20).slots() == 1);
  CHECK(slot_estimate(measured, 0).slots() == 1);
}

TEST_CASE("a steady load changes nothing") {
  slot_estimate e(measured, 64);
  for (auto n : {1, 10, 48, 30, 0}) CHECK(after(e, 100, second_of(n, 1)) == 48);
  CHECK(e.pace() == Approx(1));
}

TEST_CASE("sessions that need more than foreseen leave room for fewer, soon; that they need less is believed slowly") {
  slot_estimate e(measured, 64);
  CHECK(after(e, 2, second_of(48, 2)) == 48);                    // one hiccup changes nothing
  CHECK(after(e, 20, second_of(48, 2)) == Approx(23).margin(2)); // 0.04 + 0.02 n <= half a second
  const auto soon = after(e, 10, second_of(23, 1));
  CHECK(soon < 35);
  CHECK(after(e, 300, second_of(30, 1)) >= 44); // the last tenth does not count as a change
  CHECK(after(e, 600, second_of(40, 0.25)) >= 58);
}

TEST_CASE("a few sessions say little about a full device") {
  slot_estimate e(measured, 64), full(measured, 64);
  const auto few = after(e, 5, second_of(2, 3)), many = after(full, 5, second_of(48, 3));
  CHECK(few > many);
  CHECK(after(e, 200, second_of(2, 3)) < 24); // but in the end they count
}

TEST_CASE("late units bring the slots down to the sessions that are there, and not below one") {
  slot_estimate e(measured, 64);
  CHECK(after(e, 1, second_of(30, 1, 2)) == 48);
  CHECK(after(e, 1, second_of(30, 1, 2)) == 30);
  CHECK(after(e, 9, second_of(30, 1)) == 30);
  CHECK(after(e, 2, second_of(30, 1)) == 39); // halfway first, then further
  CHECK(after(e, 60, second_of(30, 1)) >= 44);
  auto none = second_of(1, 1, 1);
  none.sessions = 0;
  CHECK(after(e, 2, none) == 1);
}

TEST_CASE("slots don't flap") {
  slot_estimate e(measured, 64);
  auto changes = 0, before = e.slots();
  for (auto second = 0; second < 1000; ++second) {
    e.add(second_of(40, second % 2 == 0 ? 1.1 : 0.9));
    changes += e.slots() != std::exchange(before, e.slots());
  }
  CHECK(changes <= 2);
  CHECK(e.slots() >= 40);
}

TEST_CASE("a device that was measured under the load of others offers more once it is idle, and never less for that") {
  slot_estimate estimate({0.05, 0.4}, 20);
  CHECK(estimate.slots() == 1);
  CHECK_FALSE(estimate.measured({0.05, 0.5}));
  CHECK(estimate.slots() == 1);
  CHECK(estimate.measured({0.05, 0.05}));
  CHECK(estimate.slots() == 9);
  CHECK(estimate.pace() == 1);
  CHECK_FALSE(estimate.measured({0.05, 0.4}));
  CHECK(estimate.slots() == 9);
  CHECK(estimate.measured({0.0, 0.001}));
  CHECK(estimate.slots() == 20);
}

TEST_CASE("a cost that is measured while idle is the best of several runs, and is measured more and more seldom") {
  idle_measurement idle;
  std::vector<int> whiles;
  for (int i = 1; i <= 40; ++i) {
    if (!idle.due()) continue;
    whiles.push_back(i);
    std::vector<int> counts;
    std::optional<step_cost> cost;
    for (const double load : {3.0, 1.0, 2.0}) {
      for (int run = 0; run < 2; ++run) {
        CHECK_FALSE(cost);
        counts.push_back(idle.next());
        cost = idle.add((0.1 + 0.02 * (idle.next() - 1)) * load);
        CHECK(idle.begun() == !cost);
      }
    }
    CHECK(counts == std::vector{1, 4, 1, 4, 1, 4});
    REQUIRE(cost);
    CHECK(cost->session_seconds == Approx(0.02));
    CHECK(cost->fixed_seconds == Approx(0.08));
  }
  CHECK(whiles == std::vector{1, 2, 4, 8, 16, 32});
}

TEST_CASE("work makes what was begun of no use") {
  idle_measurement idle;
  CHECK(idle.due());
  idle.add(0.001);
  CHECK(idle.due());
  idle.interrupt();
  CHECK_FALSE(idle.begun());
  CHECK(idle.due());
  std::optional<step_cost> cost;
  for (int run = 0; run < 6; ++run) cost = idle.add(idle.next() == 1 ? 0.1 : 0.16);
  REQUIRE(cost);
  CHECK(cost->session_seconds == Approx(0.02));
}

TEST_CASE("a second without units says nothing") {
  slot_estimate e(measured, 64);
  CHECK(after(e, 1000, {1, 0.9, 0, 0, 3}) == 48);
}

TEST_CASE("a meter gathers passes into seconds") {
  pace_meter m;
  const pace_meter::time_point t{};
  CHECK_FALSE(m.take(t, 0));
  m.pass(t, t + 100ms, 1);
  m.pass(t + 300ms, t + 500ms, 0.5);
  m.unit(false);
  CHECK_FALSE(m.take(t + 900ms, 3));
  m.pass(t + 1000ms, t + 1200ms, 1);
  m.unit(true);
  const auto sample = m.take(t + 1250ms, 3);
  REQUIRE(sample);
  CHECK(sample->seconds == Approx(1.25));
  CHECK(sample->busy_seconds == Approx(0.4));
  CHECK(sample->units == 2);
  CHECK(sample->late_units == 1);
  CHECK(sample->sessions == 3);
  CHECK_FALSE(m.take(t + 10s, 3));
  m.pass(t + 10s, t + 10100ms, 1);
  m.unit(false);
  CHECK_FALSE(m.take(t + 14s, 3)); // four seconds, including a pause
  m.pass(t + 20s, t + 21s, 1);
  m.unit(false);
  CHECK(m.take(t + 21s, 1)->units == 1);
}

TEST_CASE("the memory of a session is counted from the model's sizes") {
  model_config published; // MiniCPM-o 4.5: 36 layers, 8 key heads of 128 values
  published.llm.layers = 36;
  published.llm.kv_heads = 8;
  published.llm.head_dim = 128;
  const auto m = thinking_memory(published, 8192, at::kBFloat16);
  CHECK(m.keys_values == std::size_t{2} * 36 * 8192 * 8 * 128 * 2);
  CHECK(m.encoder == std::size_t{2} * 24 * 1500 * 1024 * 2);
  CHECK(m.sum() == m.keys_values + m.encoder);
  CHECK(thinking_memory(published, 8192, at::kFloat).sum() == 2 * m.sum());
  CHECK(thinking_memory(published, 1, at::kBFloat16).keys_values * 128 == m.keys_values); // at least a page of 64
  published.has_audio = false;
  CHECK(thinking_memory(published, 8192, at::kBFloat16).encoder == 0);
  const auto found = find_capacity(measured, 10 * m.sum() + 1, m.sum(), 64);
  CHECK(found.by_memory == 10);
  CHECK(found.most == 10);
  CHECK(find_capacity(measured, 1000 * m.sum(), m.sum(), 64).most == 64);
}

TEST_CASE("sessions that don't all fit with a full context share what is left for keys and values") {
  session_memory m;
  m.keys_values = 1000; // ten pages
  m.flow = 500;
  CHECK(m.least() == 750);
  CHECK(pages_for_sessions(4, 10, m, 100000) == 40); // there is enough for all
  CHECK(pages_for_sessions(4, 10, m, 2000 + 1550) == 15);
  CHECK(pages_for_sessions(4, 10, m, 2000) == 10); // one always reaches its limit
  CHECK(memory_for_sessions(1000, at::kCPU) == 500);
  CHECK(memory_for_sessions(1000, at::Device(at::kCUDA, 0)) == 900);
}

TEST_CASE("a session that speaks holds what the networks remember") {
  const auto thinking = thinking_memory(testing::model()->config(), 2048, at::kFloat);
  const auto voice = testing::default_voice();
  const auto speaking = speech_memory_of(*testing::voice_box(), *voice);
  const auto m = speaking_memory(thinking, speaking, voice->prompt_rows());
  CHECK(m.keys_values == thinking.keys_values);
  // models/tiny-omni: two layers of width 32. The flow's steps hold keys and values for both guidance passes.
  CHECK(m.speech_tokens == std::size_t{2} * 2 * 2048 * 32 * sizeof(float));
  std::size_t row = 0;
  for (const auto& step : voice->prompt.steps)
    for (const auto& block : step.attention) row += block.joined().nbytes() / static_cast<std::size_t>(block.rows());
  const auto rows = static_cast<std::size_t>(voice->prompt_rows() + speech::rows_beside_voice);
  CHECK(m.flow > row * rows); // the encoder's rows come on top; what it really holds: device_speech_test
  CHECK(m.flow < 2 * row * rows);
  CHECK(speaking_memory(thinking, speaking, 2 * voice->prompt_rows()).flow > m.flow);
  CHECK(weight_bytes(checkpoint::open("models/tiny-omni"), at::kFloat) ==
        2 * weight_bytes(checkpoint::open("models/tiny-omni"), at::kBFloat16));
}
