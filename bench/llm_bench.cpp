#include "config/settings.hpp"
#include "inference/engine.hpp"
#include "inference/engine/default_model.hpp"
#include "inference/llm/sampling.hpp"
#include "inference/thinker.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include <cmath>
#include <cstdlib>

// The language model and the engine on the CPU. PARLEY_BENCH_MODEL names a checkpoint folder; default:
// models/tiny-omni.
namespace {

using namespace parley::inference;

std::filesystem::path model_directory() {
  const auto* named = std::getenv("PARLEY_BENCH_MODEL");
  return named ? std::filesystem::path(named) : embedded_model("tiny-omni");
}

const thinker& model() {
  static const auto m = [] {
    c10::InferenceMode guard;
    return thinker(checkpoint::open(model_directory()), model_config::open(model_directory()), at::kFloat, at::kCPU);
  }();
  return m;
}

std::vector<token_id> ids(std::int64_t count) {
  std::vector<token_id> result;
  for (auto i = std::int64_t{0}; i < count; ++i) result.push_back(i * 7919 % 1500);
  return result;
}

/// Rows of a prompt per second.
void prefill(benchmark::State& state) {
  c10::InferenceMode guard;
  const auto& llm = model().llm();
  llm::kv_pool pool(llm.config(), 1, 2048, llm.dtype(), llm.device());
  auto prompt = llm.embed(ids(state.range(0)));
  auto last = state.range(0) - 1;
  for (auto _ : state) {
    auto cache = pool.open();
    llm::sequence_rows rows{&cache, prompt.size(0)};
    benchmark::DoNotOptimize(llm.logits(llm.forward(prompt, {&rows, 1}, {&last, 1})));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(prefill)->Arg(13)->Arg(256)->Arg(1024)->UseRealTime();

/// One token of each of N sessions after 1024 rows, sampled.
void decode(benchmark::State& state) {
  c10::InferenceMode guard;
  const auto& llm = model().llm();
  auto count = state.range(0);
  llm::kv_pool pool(llm.config(), static_cast<int>(count), 1100, llm.dtype(), llm.device());
  auto prompt = llm.embed(ids(1024));
  std::vector<llm::kv_cache> caches;
  std::vector<llm::sequence_rows> rows;
  std::vector<std::int64_t> wanted;
  for (auto i = std::int64_t{0}; i < count; ++i) {
    caches.push_back(pool.open());
    llm::sequence_rows whole{&caches.back(), 1024};
    llm.forward(prompt, {&whole, 1}, {});
    wanted.push_back(i);
  }
  for (auto& c : caches) rows.push_back({&c, 1});
  auto names = llm::make_duplex_sampling_ids(model().text(), {});
  llm::sampling_scratch scratch;
  random_stream chance(1, substream::text);
  std::vector<token_id> history;
  auto next = ids(count);
  for (auto _ : state) {
    auto logits = llm.logits(llm.forward(llm.embed(next), rows, wanted));
    for (auto i = std::int64_t{0}; i < count; ++i) {
      std::span<float> row(logits[i].mutable_data_ptr<float>(), static_cast<std::size_t>(logits.size(1)));
      next[static_cast<std::size_t>(i)] = llm::draw_duplex(row, names, {}, {}, history, chance, scratch);
    }
    history.clear();
    for (auto& c : caches) c.truncate(1024);
  }
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(decode)->Arg(1)->Arg(4)->Arg(16)->UseRealTime();

/// One second of N duplex sessions through the engine, forced to listen or free to speak.
void engine_units(benchmark::State& state) {
  parley::config::settings settings;
  settings.worker.model = model_directory().string();
  settings.worker.max_sessions = static_cast<int>(state.range(0));
  settings.engine.seed = 1;
  auto tokens = std::int64_t{0};
  auto full = false;
  auto engine = make_engine(settings, [&](event&& e) {
    if (const auto* out = std::get_if<step_output>(&e)) tokens += out->used.output_text;
    full |= std::holds_alternative<failed>(e);
  });
  std::vector<float> tone(16000);
  for (auto i = std::size_t{0}; i < tone.size(); ++i) tone[i] = 0.2F * std::sin(0.1F * static_cast<float>(i % 1700));
  auto sound = std::make_shared<const std::vector<float>>(std::move(tone));
  duplex_options how;
  how.force_listen_count = state.range(1) != 0 ? 0 : 1 << 30;
  how.window = window_mode::basic;
  for (auto id = 0; id < state.range(0); ++id)
    engine->handle(open_duplex{static_cast<session_id>(id), "You are a helpful assistant.", how, nullptr, nullptr, {}});
  while (engine->advance()) {
  }
  auto unit = std::uint64_t{0};
  for (auto _ : state) {
    for (auto id = 0; id < state.range(0); ++id)
      engine->handle(submit_unit{{sound, {}, 1, false}, static_cast<session_id>(id), unit});
    ++unit;
    while (engine->advance()) {
    }
  }
  if (full) state.SkipWithError("a unit failed");
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["tokens_per_unit"] =
      static_cast<double>(tokens) / static_cast<double>(state.iterations() * state.range(0));
}
BENCHMARK(engine_units)
    ->ArgNames({"sessions", "speaks"})
    ->ArgsProduct({{1, 2, 4, 8, 16, 32, 64}, {0, 1}})
    ->Iterations(40)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

} // namespace

BENCHMARK_MAIN();
