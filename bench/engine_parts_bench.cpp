#include "inference/engine/scheduler.hpp"
#include "inference/llm/kv_pool.hpp"

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include <vector>

// What the engine does between its batched calls: scheduling many sessions, and pages for a session's keys and values.
namespace {

using namespace parley::inference;

void plan_a_pass(benchmark::State& state) {
  constexpr stage stages[] = {stage::hear, stage::decode, stage::decode, stage::prefill, stage::speak, stage::sound};
  std::vector<ready_session> ready;
  const auto now = std::chrono::steady_clock::now();
  for (auto i = 0; i < state.range(0); ++i)
    ready.push_back({static_cast<session_id>(i), stages[i % std::size(stages)],
                     now + std::chrono::milliseconds(i * 7919 % 1000), 13, i % 12 == 3});
  for (auto _ : state) benchmark::DoNotOptimize(schedule_pass(ready, {}));
}

/// A session opens, reserves room for a unit and then token by token, and closes.
void pages_of_a_session(benchmark::State& state) {
  llm_config config;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 16;
  const llm::kv_pool pool(config, 64, 8192, at::kFloat, at::kCPU);
  std::vector<std::int64_t> rows;
  for (auto _ : state) {
    auto cache = pool.open();
    for (auto token = 0; token < 256; ++token) {
      rows.clear();
      cache.reserve(1);
      cache.rows_to_write(1, rows);
      cache.commit(1);
    }
    benchmark::DoNotOptimize(rows.data());
  }
  state.SetItemsProcessed(256 * state.iterations());
}

BENCHMARK(plan_a_pass)->Arg(1)->Arg(8)->Arg(64);
BENCHMARK(pages_of_a_session);

} // namespace

BENCHMARK_MAIN();
