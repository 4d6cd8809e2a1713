#include "base/read_file.hpp"
#include "config/settings.hpp"
#include "inference/duplex/frame_rows.hpp"
#include "inference/engine.hpp"
#include "inference/engine/default_model.hpp"
#include "inference/thinker.hpp"

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include <stdexcept>

// The cost of a 640x480 frame: slicing on its own thread, the encoder, and one second of eight sessions with and
// without frames. Run it from the source root. The column CPU is that of the engine's thread: `engine_second` with
// frames may exceed the one without by no more than `frames_alone`.
namespace {

using namespace parley::inference;

constexpr int sessions = 8;
constexpr std::int64_t past_rows = 512;

const image_file& frame() {
  static const auto file = [] {
    auto bytes = parley::base::read_file("tests/data/pictures/frame.jpg");
    if (!bytes) throw std::runtime_error("run it from the source root");
    return std::make_shared<const std::string>(*std::move(bytes));
  }();
  return file;
}

const thinker& model() {
  static const auto m = [] {
    c10::InferenceMode guard;
    const auto folder = embedded_model("tiny-omni");
    return thinker(checkpoint::open(folder), model_config::open(folder), at::kFloat, at::kCPU);
  }();
  return m;
}

/// From a file to pieces, as the image preprocessor does it.
void slice(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(vision::slice_file(*frame(), static_cast<int>(state.range(0)), {}));
}
BENCHMARK(slice)->Arg(1)->Arg(9);

/// Encoder and resampler on a number of frames.
void see(benchmark::State& state) {
  c10::InferenceMode guard;
  const std::vector frames(static_cast<std::size_t>(state.range(0)), *vision::slice_file(*frame(), 1, {}));
  const auto pieces = duplex::pieces_of(frames);
  for (auto _ : state) benchmark::DoNotOptimize(model().sight().see(pieces));
}
BENCHMARK(see)->Arg(1)->Arg(sessions);

/// Encoder, resampler and prefill of 66 rows for each session, and nothing else.
void frames_alone(benchmark::State& state) {
  c10::InferenceMode guard;
  const auto& llm = model().llm();
  llm::kv_pool pool(llm.config(), sessions, past_rows + 128, llm.dtype(), llm.device());
  const std::vector frames(sessions, *vision::slice_file(*frame(), 1, {}));
  const auto pieces = duplex::pieces_of(frames);
  const auto past = at::zeros({past_rows, llm.config().hidden_size});
  std::vector<llm::kv_cache> caches;
  std::vector<llm::sequence_rows> rows;
  for (int i = 0; i < sessions; ++i) {
    caches.push_back(pool.open());
    llm::sequence_rows whole{&caches.back(), past_rows};
    llm.forward(past, {&whole, 1}, {});
  }
  for (auto& cache : caches) rows.push_back({&cache, model().config().vision.query_num + 2});
  for (auto _ : state) {
    const auto input = duplex::frame_rows(model(), frames, model().sight().see(pieces));
    benchmark::DoNotOptimize(llm.forward(input, rows, {}));
    for (auto& cache : caches) cache.truncate(past_rows);
  }
}
BENCHMARK(frames_alone);

/// One second of eight listening sessions, with a frame each or without.
void engine_second(benchmark::State& state) {
  parley::config::settings settings;
  settings.worker.max_sessions = sessions;
  settings.worker.model = embedded_model("tiny-omni").string();
  settings.engine.seed = 1;
  bool failures = false;
  auto engine = make_engine(settings, [&](event&& e) { failures |= std::holds_alternative<failed>(e); });
  const auto silence = std::make_shared<const std::vector<float>>(16000);
  duplex_options how;
  how.force_listen_count = 1 << 30;
  how.generate_audio = false;
  how.window = window_mode::basic;
  how.window_high_tokens = 700; // about `past_rows` on average, with frames and without
  how.window_low_tokens = 400;
  for (session_id id = 0; id < sessions; ++id) engine->handle(open_duplex{id, "Look.", how, nullptr, nullptr, {}});
  std::uint64_t unit = 0;
  const auto second = [&] {
    for (session_id id = 0; id < sessions; ++id)
      engine->handle(submit_unit{
          {silence, std::vector<image_file>(static_cast<std::size_t>(state.range(0)), frame()), 1, false}, id, unit});
    ++unit;
    while (engine->advance()) {
    }
  };
  while (engine->advance()) {
  }
  for (int i = 0; i < 40; ++i) second();
  for (auto _ : state) second();
  if (failures) state.SkipWithError("a unit failed");
}
BENCHMARK(engine_second)->ArgName("frames")->Arg(0)->Arg(1);

} // namespace

BENCHMARK_MAIN();
