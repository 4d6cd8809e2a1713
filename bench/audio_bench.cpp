// One second of sound for many sessions: mel features, then the encoder with a warm cache, then the projector.
// PARLEY_BENCH_MODEL names a checkpoint folder (`parley init-model` makes one); default: the tiny test checkpoint.

#include "inference/audio/encoder.hpp"
#include "inference/audio/mel.hpp"
#include "inference/audio/projector.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <deque>

using namespace parley::inference;
using namespace parley::inference::audio;

namespace {

const char* model_directory() {
  const auto* named = std::getenv("PARLEY_BENCH_MODEL");
  return named != nullptr ? named : "tests/data/checkpoints/tiny";
}

std::vector<float> one_second() {
  std::vector<float> result(sample_rate);
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = 0.3F * std::sin(0.05F * static_cast<float>(i)) * std::sin(0.0003F * static_cast<float>(i));
  return result;
}

void mel_second(benchmark::State& state) {
  at::InferenceMode no_autograd;
  mel_extractor mel(model_config::open(model_directory()).audio.mel_bins);
  auto sound = one_second();
  std::deque<mel_stream> streams(static_cast<std::size_t>(state.range(0)));
  std::vector<mel_extractor::stream_input> inputs;
  for (auto& stream : streams) inputs.push_back({&stream, sound});
  for (int warm = 0; warm < 8; ++warm) mel.stream(inputs); // beyond the five seconds that the dynamic range covers
  for (auto _ : state) benchmark::DoNotOptimize(mel.stream(inputs));
  state.counters["sessions/s"] =
      benchmark::Counter(static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate);
}

void encoder_second(benchmark::State& state) {
  at::InferenceMode no_autograd;
  auto config = model_config::open(model_directory()).audio;
  auto files = checkpoint::open(model_directory());
  encoder encode(config, files.view("apm."));
  projector project(config.pool_step, files.view("audio_projection_layer."));
  auto sessions = static_cast<std::size_t>(state.range(0));
  std::vector<encoder_cache> caches;
  for (std::size_t i = 0; i < sessions; ++i) caches.push_back(encode.make_cache());
  auto mel = at::randn({104, config.mel_bins});
  std::vector<std::int64_t> frames(sessions, 104);
  std::vector<stream_chunk> chunks;
  for (auto& cache : caches) chunks.push_back({&cache, mel, 1, 1});
  for (auto _ : state) {
    // On average half of the context is in use.
    for (auto& cache : caches) cache.length = config.max_positions / 2;
    benchmark::DoNotOptimize(project.project(encode.stream(chunks), frames));
  }
  state.counters["sessions/s"] =
      benchmark::Counter(static_cast<double>(sessions), benchmark::Counter::kIsIterationInvariantRate);
}

} // namespace

BENCHMARK(mel_second)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(encoder_second)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond)->UseRealTime();

BENCHMARK_MAIN();
