// Times each stage of a model by the number of sessions, on any device: one JSON line per row on standard output.
//   gpu_stages --model DIR --device cuda:0 --sessions 1,8,64
// Sessions are synthetic (inference/engine/synthetic_sessions.hpp); a row's time is that of one batched call, until the
// device has done its work. A row that fails has an error instead.

#include "config/settings.hpp"
#include "inference/engine/capacity.hpp"
#include "inference/engine/device.hpp"
#include "inference/engine/synthetic_sessions.hpp"
#include "inference/formats/wav_file.hpp"
#include "inference/kernels/device_graph.hpp"
#include "inference/kernels/varlen_attention.hpp"
#include "inference/voice/default_voice_file.hpp"
#include "inference/voice/features.hpp"

#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>
#include <c10/core/InferenceMode.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace parley::inference;

namespace {

struct wish {
  std::string model, device = "cuda:0";
  parley::config::dtype dtype = parley::config::dtype::automatic;
  parley::config::speech_dtype speech = parley::config::speech_dtype::float32;
  std::vector<std::string> stages{"llm", "tts", "hear", "window"};
  std::vector<int> sessions{1, 8, 16, 32, 64, 96, 128};
  int past = 4096, prompt = 512;
  double seconds = 1;
  std::string traces;
  bool cudnn_attention = false, plain_attention = false, no_graphs = false;
};

using timer = std::chrono::steady_clock;

double seconds_since(timer::time_point begin) {
  return std::chrono::duration<double>(timer::now() - begin).count();
}

double mebibytes(double bytes) {
  return bytes / (1024.0 * 1024.0);
}

void print(const nlohmann::json& row) {
  std::cout << row << std::endl;
}

/// Time and memory of a device.
class stopwatch {
public:
  explicit stopwatch(at::Device device) : device_(device) {}

  void wait() const {
    if (!device_.is_cpu()) at::accelerator::synchronizeDevice(device_.index());
  }

  /// Milliseconds.
  double time(const std::function<void()>& work) const {
    wait();
    const auto begin = timer::now();
    work();
    wait();
    return seconds_since(begin) * 1e3;
  }

  /// MiB in use now, and at most since the last `forget`; 0 on the CPU.
  double used() const {
    return statistic([](const auto& s) { return s.current; });
  }
  double most_used() const {
    return statistic([](const auto& s) { return s.peak; });
  }

  void forget() const {
    if (device_.is_cpu()) return;
    at::accelerator::emptyCache();
    at::accelerator::resetPeakStats(device_.index());
  }

private:
  double statistic(auto pick) const {
    if (device_.is_cpu()) return 0;
    return mebibytes(static_cast<double>(pick(at::accelerator::getDeviceStats(device_.index()).allocated_bytes[0])));
  }

  at::Device device_;
};

/// One stage for so many sessions: made once, then called again and again. `prepare` is not timed.
struct trial {
  std::function<void()> prepare, call;
};

/// The p50 and p95 of many calls, in the row's members. Of slow calls there are fewer.
void measure(const trial& made, const stopwatch& watch, double seconds, nlohmann::json& row) {
  constexpr std::size_t warm_up = 2, least = 5, most = 60;
  constexpr auto patience = 5.0; // seconds
  std::vector<double> times;
  const auto begin = timer::now();
  const auto go_on = [&] {
    const auto spent = seconds_since(begin);
    if (times.size() < least) return times.empty() || spent < patience;
    return times.size() < most && spent < seconds;
  };
  for (std::size_t i = 0; go_on(); ++i) {
    if (made.prepare) made.prepare();
    const auto ms = watch.time(made.call);
    if (i >= warm_up || seconds_since(begin) > patience) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  const auto last = static_cast<double>(times.size() - 1);
  row["p50_ms"] = times[static_cast<std::size_t>(last * 0.5)];
  row["p95_ms"] = times[static_cast<std::size_t>(last * 0.95 + 0.5)];
  row["calls"] = times.size();
}

/// Writes what one call asked of the device and of the CPU, with times, for chrome://tracing and bench/gpu/trace.py.
void trace(const trial& made, const stopwatch& watch, at::Device device, const std::string& file) {
  namespace profiler = torch::autograd::profiler;
  if (made.prepare) made.prepare();
  watch.wait();
  const profiler::ProfilerConfig config{torch::profiler::impl::ProfilerState::KINETO};
  std::set<torch::profiler::impl::ActivityType> activities{torch::profiler::impl::ActivityType::CPU};
  if (!device.is_cpu()) activities.insert(torch::profiler::impl::ActivityType::CUDA);
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  made.call();
  watch.wait();
  profiler::disableProfiler()->save(file);
}

class bench {
public:
  explicit bench(const wish& how)
      : how_(how), weights_(checkpoint::open(how.model)), sizes_(model_config::open(how.model)),
        device_(find_device(how.device, sizes_.llm.hidden_size)), watch_(device_) {
    set_up_accelerators(float32_products::rounded);
    if (how.cudnn_attention) at::globalContext().setSDPUseCuDNN(true);
    varlen_attention::prefer_loop(how.plain_attention);
    graph_cache::prefer_calls(how.no_graphs);
    const auto begin = timer::now();
    const auto dtype = find_dtype(how.dtype, device_, sizes_.llm.hidden_size);
    thinks_ = std::make_unique<const thinker>(weights_, sizes_, dtype, device_);
    speaks_ = talker::open(weights_, sizes_, quirks{}, dtype, device_, how.speech);
    watch_.wait();
    print({{"stage", "load"},
           {"seconds", seconds_since(begin)},
           {"memory_mib", watch_.used()},
           {"device", device_.str()},
           {"dtype", c10::toString(dtype)}});
  }

  /// Returns false if the device was lost.
  bool run() {
    const auto works = device_probe(device_);
    for (const auto& stage : how_.stages)
      for (const auto& [name, make] : trials(stage))
        for (const auto n : how_.sessions) {
          if (row(name, n, make)) continue;
          if (!works()) return false;
          break; // more sessions would not fit either
        }
    return true;
  }

private:
  using maker = std::function<trial(int)>;

  std::vector<std::pair<std::string, maker>> trials(const std::string& stage) {
    using synthetic::prompt;
    if (stage == "llm")
      return {{"LLM step, own prompts", llm(prompt::own, 1)},
              {"LLM step, shared prompt", llm(prompt::shared, 1)},
              {"LLM unit of 13 rows, own prompts", llm(prompt::own, 13)},
              {"LLM unit among tokens, own prompts", unit_among_tokens()}};
    if (stage == "hear" && thinks_->hears()) return {{"hear a second", hear()}};
    if (!speaks_) return {};
    if (stage == "tts") return {{"TTS step", tts(1)}, {"TTS pass of four steps", tts(4)}};
    if (stage == "window") return {{"window of sound", window(voice())}};
    return {};
  }

  /// Returns false if it failed.
  bool row(const std::string& name, int sessions, const maker& make) {
    nlohmann::json row{{"stage", name}, {"sessions", sessions}};
    watch_.forget();
    const auto before = watch_.used();
    try {
      const auto made = make(sessions);
      measure(made, watch_, how_.seconds, row);
      row["memory_mib"] = watch_.most_used() - before;
      if (!how_.traces.empty()) {
        auto file = how_.traces + "/" + name + ", " + std::to_string(sessions) + ".json";
        std::ranges::replace(file, ' ', '_');
        trace(made, watch_, device_, file);
      }
    } catch (const c10::Error& e) {
      row["error"] = e.what_without_backtrace();
    } catch (const std::exception& e) {
      row["error"] = e.what();
    }
    print(row);
    return !row.contains("error");
  }

  maker llm(synthetic::prompt how, std::int64_t rows) {
    return [this, how, rows](int n) {
      constexpr auto most_calls = 64;
      const auto room = how_.past + most_calls * static_cast<int>(rows);
      const auto batch = std::make_shared<synthetic::llm_sessions>(*thinks_, n, room);
      batch->begin(how, how_.prompt);
      batch->remember(how_.past - how_.prompt);
      return trial{{}, [batch, rows] { batch->feed(rows); }};
    };
  }

  maker unit_among_tokens() {
    return [this](int n) {
      constexpr auto most_calls = 64, unit = 13;
      const auto batch = std::make_shared<synthetic::llm_sessions>(*thinks_, n, how_.past + most_calls * unit);
      batch->begin(synthetic::prompt::own, how_.prompt);
      batch->remember(how_.past - how_.prompt);
      return trial{{}, [batch] { batch->feed(1, unit); }};
    };
  }

  maker hear() {
    return [this](int n) {
      const auto batch = std::make_shared<synthetic::hearing_sessions>(*thinks_, n);
      return trial{{}, [batch] { batch->hear(); }};
    };
  }

  maker tts(int steps) {
    return [this, steps](int n) {
      const auto batch = std::make_shared<synthetic::tts_sessions>(*speaks_, n);
      const auto begin = [batch] {
        if (batch->running()) return;
        batch->begin(10);
        batch->step(); // it feeds the words
      };
      return trial{begin, [batch, steps] { batch->step(steps); }};
    };
  }

  maker window(const std::shared_ptr<const speech::voice>& voice) {
    return [this, voice](int n) {
      const auto batch = std::make_shared<synthetic::sounding_sessions>(*speaks_, voice, n);
      return trial{{}, [batch] { batch->sound(); }};
    };
  }

  /// That of the model folder, with a row of what preparing it takes.
  std::shared_ptr<const speech::voice> voice() {
    const auto file = speech::default_voice_file(how_.model);
    if (!file) throw std::runtime_error("the model folder has no recording of a voice");
    const auto wav = speech::read_wav_file(*file);
    const auto samples = wav.samples.slice(1, 0, speech::longest_voice_samples * wav.rate / speech::voice_rate);
    std::shared_ptr<const speech::voice> prepared;
    nlohmann::json row{{"stage", "prepare a voice"}, {"sessions", 1}};
    const auto prepare = [&] { prepared = speaks_->sound().prepare(speaks_->sound().ear().hear(samples, wav.rate)); };
    measure({{}, prepare}, watch_, 0, row);
    print(row);
    return prepared;
  }

  const wish& how_;
  checkpoint weights_;
  model_config sizes_;
  at::Device device_;
  stopwatch watch_;
  std::unique_ptr<const thinker> thinks_;
  std::shared_ptr<const talker> speaks_;
};

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Times each stage of a model by the number of sessions", "gpu_stages"};
  wish how;
  using parley::config::dtype;
  const std::map<std::string, dtype> dtypes{{"auto", dtype::automatic},
                                            {"float32", dtype::float32},
                                            {"bfloat16", dtype::bfloat16},
                                            {"float16", dtype::float16}};
  app.add_option("--model", how.model, "Checkpoint folder")->required();
  app.add_option("--device", how.device, "cpu, cuda or cuda:N; default cuda:0");
  app.add_option("--dtype", how.dtype, "auto, float32, bfloat16 or float16")
      ->transform(CLI::CheckedTransformer(dtypes));
  using parley::config::speech_dtype;
  const std::map<std::string, speech_dtype> speeches{{"float32", speech_dtype::float32},
                                                     {"mixed", speech_dtype::mixed}};
  app.add_option("--speech", how.speech, "float32 or mixed: engine.speech_dtype")
      ->transform(CLI::CheckedTransformer(speeches));
  app.add_option("--stages", how.stages, "of llm, tts, hear, window; default all")
      ->delimiter(',')
      ->check(CLI::IsMember({"llm", "tts", "hear", "window"}));
  app.add_option("--sessions", how.sessions, "Numbers of sessions, rising")->delimiter(',')->check(CLI::PositiveNumber);
  app.add_option("--past", how.past, "Rows that each session has in the language model");
  app.add_option("--prompt", how.prompt, "Rows of them that are its prompt");
  app.add_option("--seconds", how.seconds, "Time for the calls of one row");
  app.add_option("--traces", how.traces, "Folder: a trace of one more call of each row")->check(CLI::ExistingDirectory);
  app.add_flag("--cudnn-attention", how.cudnn_attention, "Allow cuDNN's attention, which Parley turns off");
  app.add_flag("--no-graphs", how.no_graphs, "Launch kernel by kernel what else is recorded as a graph");
  app.add_flag("--plain-attention", how.plain_attention, "Attend to one sequence after another, without fused kernels");
  CLI11_PARSE(app, argc, argv);
  const c10::InferenceMode guard;
  try {
    if (how.past < how.prompt || how.prompt < 1)
      throw std::runtime_error("--past must be at least --prompt, and that 1");
    if (bench(how).run()) return 0;
    std::cerr << "gpu_stages: the device is lost\n";
  } catch (const c10::Error& e) {
    std::cerr << "gpu_stages: " << e.what_without_backtrace() << '\n';
  } catch (const std::exception& e) {
    std::cerr << "gpu_stages: " << e.what() << '\n';
  }
  return 1;
}
