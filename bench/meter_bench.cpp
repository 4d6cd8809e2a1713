#include "actors/session/session_meter.hpp"

#include <benchmark/benchmark.h>

// The cost of the metrics for one second of sound: what its engine reports and what its client is sent.
namespace {

using namespace parley;

void count_unit(benchmark::State& state) {
  static actors::meters all;
  actors::session_meter meter(all);
  meter.runs_on(1);
  conversation::step_output output{};
  output.used = {2, 10, 0, 12, 25};
  output.metrics = {
      .kv_cache_length = 500, .prefill_ms = 20, .generate_ms = 200, .llm_ms = 180, .tts_ms = 80, .token2wav_ms = 120};
  const conversation::event event = output;
  protocol::output_delta delta;
  delta.kind = protocol::output_kind::text;
  delta.measured.wall_clock_ms = 300;
  delta.measured.queue_ms = 1;
  delta.measured.dropped_chunks = 0;
  const protocol::server_event told = delta;
  for (auto _ : state) {
    meter.heard(event);
    meter.sent(told, protocol::mode::audio);
  }
}

BENCHMARK(count_unit)->Threads(1)->Threads(2);

} // namespace

BENCHMARK_MAIN();
