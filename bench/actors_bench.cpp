#include "actors/queue/admission_queue.hpp"
#include "protocol/media/base64.hpp"
#include "protocol/session/session_machine.hpp"

#include <benchmark/benchmark.h>
#include <caf/all.hpp>

#include <span>
#include <string>
#include <vector>

// Everything between the wire and the engine: a message from actor to actor, one second of a session, the queue.
namespace {

using namespace parley;
using clock_type = std::chrono::steady_clock;

struct ball {
  std::shared_ptr<const std::vector<float>> samples;
};

} // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(ball)

namespace {

using receiver = caf::typed_actor<caf::reacts_to<ball>>;

/// Messages from one thread to an actor, as fast as it accepts them. Each message points to a second of sound.
void mailbox_hop(benchmark::State& state) {
  caf::actor_system_config config;
  config.set("scheduler.max-threads", 2);
  config.set("scheduler.policy", caf::atom("sharing"));
  caf::actor_system system(config);
  std::atomic<std::int64_t> received = 0;
  auto sink =
      system.spawn([&received]() -> receiver::behavior_type { return {[&received](const ball&) { ++received; }}; });
  const ball second{std::make_shared<const std::vector<float>>(16'000)};
  std::int64_t sent = 0;
  for (auto _ : state) {
    caf::anon_send(sink, second);
    if (++sent % 1024 == 0)
      while (received < sent - 512) std::this_thread::yield();
  }
  while (received < sent) std::this_thread::yield();
  state.SetItemsProcessed(sent);
}

/// One second of sound arrives as JSON, its unit is submitted, and `listen` is reported: protocol rules and decoding,
/// no encoding.
void second_of_a_session(benchmark::State& state) {
  const std::vector<float> sound(16'000, 0.1F);
  std::string audio;
  protocol::base64::append(std::as_bytes(std::span(sound)), audio);
  const auto frame = R"({"type":"input.append","input":{"audio":")" + audio + R"("}})";
  protocol::session_limits limits;
  limits.context_tokens = 1 << 30;
  protocol::session_machine machine({"audio", "sess_bench", "1", {}, {}}, limits, {true, true, true},
                                    [] { return std::uint64_t{7}; });
  auto now = clock_type::time_point{} + std::chrono::hours(1);
  machine.start(now);
  machine.on_granted(now);
  machine.on_frame(R"({"type":"session.init","payload":{}})", now);
  machine.on_engine_opened({0, 12, {}}, now);
  std::uint64_t unit = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(machine.on_frame(frame, now));
    conversation::step_output report;
    report.unit = unit++;
    report.kind = protocol::output_kind::listen;
    report.first = report.last = true;
    benchmark::DoNotOptimize(machine.on_step(std::move(report), now));
  }
  if (machine.state() != protocol::session_state::active) state.SkipWithError("the session has ended");
}

/// A session ends, the next client in a queue of the given length is served, and a new one joins.
void queue_moves_on(benchmark::State& state) {
  actors::queue_settings settings;
  settings.capacity = 1 << 20;
  actors::admission_queue line(settings);
  const auto now = clock_type::time_point{} + std::chrono::hours(1);
  line.offer(1, 32, now);
  std::uint64_t next = 1, oldest = 1;
  for (auto i = std::int64_t{0}; i < 32 + state.range(0); ++i)
    line.enqueue(next++, "t", protocol::mode::audio, false, now);
  for (auto _ : state) {
    line.accept(oldest, now);
    benchmark::DoNotOptimize(line.free(oldest++, now));
    benchmark::DoNotOptimize(line.enqueue(next++, "t", protocol::mode::audio, false, now));
  }
}

BENCHMARK(mailbox_hop)->UseRealTime();
BENCHMARK(second_of_a_session);
BENCHMARK(queue_moves_on)->Arg(10)->Arg(1000);

} // namespace

BENCHMARK_MAIN();
