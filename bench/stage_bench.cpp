// One session on one thread, stage by stage: what bench/reference.py compares. JSON on standard output, milliseconds of
// CPU time.
//   stage_bench MODEL WAV UNITS
// The units are the seconds of the recording, repeated as needed; text is greedy, and the voice is the model's own.

#include "config/settings.hpp"
#include "inference/engine.hpp"
#include "inference/engine/default_model.hpp"
#include "inference/formats/wav_file.hpp"
#include "inference/llm/qwen3.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>

using namespace parley::inference;

namespace {

constexpr auto prompt = "You are a helpful assistant.";
constexpr auto question = "Tell me a story about a river and a mill.";
constexpr int answer_tokens = 96;

double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

double wall_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The engine reports wall time. If other programs ran meanwhile, its times are scaled down to CPU time.
nlohmann::json unit_row(const std::vector<step_output>& answer, double used, double passed) {
  const auto& last = answer.back();
  const auto share = used / passed;
  std::string text;
  for (const auto& part : answer) text += part.text;
  const auto& m = last.metrics;
  return {{"unit", used},
          {"prefill", m.prefill_ms * share},
          {"llm", m.llm_ms * share},
          {"tts", m.tts_ms * share},
          {"token2wav", m.token2wav_ms * share},
          {"listens", last.kind == output_kind::listen},
          {"tokens", m.n_tokens},
          {"tts_tokens", m.n_tts_tokens},
          {"text", text}};
}

parley::config::settings settings_for(const std::filesystem::path& model) {
  parley::config::settings s;
  s.worker.model = model.string();
  s.worker.max_sessions = 1;
  s.worker.threads = 1;
  s.engine.seed = 1;
  s.engine.reference_quirks = true;
  return s;
}

nlohmann::json play(const std::filesystem::path& model, const std::vector<float>& sound, int units) {
  std::vector<step_output> answer;
  chat_done done;
  std::string trouble;
  auto engine = make_engine(settings_for(model), [&](event&& e) {
    if (auto* out = std::get_if<step_output>(&e)) answer.push_back(std::move(*out));
    if (auto* out = std::get_if<chat_done>(&e)) done = std::move(*out);
    if (auto* out = std::get_if<failed>(&e)) trouble = out->message;
  });
  const auto run = [&] {
    while (engine->advance()) {
    }
    if (!trouble.empty()) throw std::runtime_error(trouble);
  };
  pcm voice;
  if (const auto file = model / "assets" / "default_voice.wav"; exists(file)) {
    const auto wav = speech::read_wav_file(file).samples.squeeze(0).contiguous();
    voice = std::make_shared<const std::vector<float>>(wav.const_data_ptr<float>(),
                                                       wav.const_data_ptr<float>() + wav.numel());
  }
  duplex_options how;
  how.sampling.greedy = true;
  how.force_listen_count = 3;
  engine->handle(open_duplex{1, prompt, how, voice, nullptr, {}});
  run();
  auto rows = nlohmann::json::array();
  for (auto unit = 0; unit < units; ++unit) {
    std::vector<float> second(16000);
    for (std::size_t i = 0; i < second.size(); ++i)
      second[i] = sound[(static_cast<std::size_t>(unit) * 16000 + i) % sound.size()];
    const auto samples = std::make_shared<const std::vector<float>>(std::move(second));
    answer.clear();
    const auto begin = processor_ms(), began = wall_ms();
    engine->handle(submit_unit{{samples, {}, 1, false}, 1, static_cast<std::uint64_t>(unit)});
    run();
    rows.push_back(unit_row(answer, processor_ms() - begin, wall_ms() - began));
  }
  engine->handle(close_session{1});
  engine->handle(open_chat{2, {}});
  run();
  submit_turn turn;
  turn.session = 2;
  turn.turn = 1;
  turn.messages = {{role::user, {text_item{question}}}};
  turn.max_new_tokens = answer_tokens;
  turn.do_sample = false;
  const auto begin = processor_ms();
  engine->handle(std::move(turn));
  run();
  const auto seconds = (processor_ms() - begin) / 1e3;
  return {{"units", rows}, {"chat_tokens_per_second", static_cast<double>(done.used.output_text) / seconds}};
}

/// One token after 128 others, and one plain read of all the weights that it needs.
void decode(const std::filesystem::path& model, nlohmann::json& into) {
  c10::InferenceMode guard;
  const auto weights = checkpoint::open(model);
  const llm::qwen3 llm(model_config::open(model).llm, weights.view("llm."));
  const llm::kv_pool pool(llm.config(), 1, 512, llm.dtype(), llm.device());
  auto cache = pool.open();
  const llm::sequence_rows past{&cache, 128}, one{&cache, 1};
  llm.forward(llm.embed(std::vector<token_id>(128, 5)), {&past, 1}, {});
  const auto row = std::int64_t{0};
  const token_id next[] = {7};
  const auto bytes = llm.weight_bytes() - llm.embed(next).nbytes() * static_cast<std::size_t>(llm.vocabulary());
  const auto memory = at::ones({static_cast<std::int64_t>(bytes / sizeof(float))});
  auto fastest = 1e9, read = 1e9;
  for (auto i = 0; i < 12; ++i) {
    auto begin = processor_ms();
    llm.logits(llm.forward(llm.embed(next), {&one, 1}, {&row, 1}));
    fastest = std::min(fastest, processor_ms() - begin);
    begin = processor_ms();
    memory.sum();
    read = std::min(read, processor_ms() - begin);
  }
  into["decode_ms"] = fastest;
  into["read_ms"] = read;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: stage_bench MODEL WAV UNITS\n";
    return 2;
  }
  try {
    at::set_num_threads(1);
    const auto wav = speech::read_wav_file(argv[2]).samples.squeeze(0).contiguous();
    const std::vector<float> sound(wav.const_data_ptr<float>(), wav.const_data_ptr<float>() + wav.numel());
    auto report = play(argv[1], sound, std::atoi(argv[3]));
    decode(argv[1], report);
    std::cout << report << '\n';
  } catch (const std::exception& e) {
    std::cerr << "stage_bench: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
