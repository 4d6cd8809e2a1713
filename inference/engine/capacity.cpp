#include "inference/engine/capacity.hpp"

#include "inference/engine/scheduler.hpp"
#include "inference/engine/synthetic_sessions.hpp"
#include "inference/kernels/device_graph.hpp"

#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <optional>
#include <stdexcept>

namespace parley::inference {

namespace {

using timer = std::chrono::steady_clock;

/// The number of tokens in a talkative unit.
constexpr int tokens_per_unit = 20;
constexpr int measured_tokens = 4;
constexpr int past_rows = 1024;
/// Seconds of a stream after which its calls of the audio encoder have had their shape twice; the first has one of its own.
constexpr int seconds_to_graph = 3;
/// Windows of a stream after which its calls of the vocoder have had each shape twice: when a graph is recorded.
constexpr int windows_to_full_history = 5;

double since(timer::time_point begin) {
  return std::chrono::duration<double>(timer::now() - begin).count();
}

/// Times one unit for each of `count` sessions that have some history.
double time_units(const thinker& model, int count) {
  synthetic::llm_sessions thinking(model, count, past_rows + 256);
  thinking.begin(synthetic::prompt::own, 0);
  thinking.remember(past_rows);
  std::optional<synthetic::hearing_sessions> hearing;
  if (model.hears()) hearing.emplace(model, count);
  auto begin = timer::now();
  if (hearing) hearing->hear();
  thinking.feed(13);
  const auto prefill = since(begin);
  begin = timer::now();
  for (auto i = 0; i < measured_tokens; ++i) thinking.feed(1);
  return prefill + since(begin) * tokens_per_unit / measured_tokens;
}

/// Speech tokens that the engine lets a device choose at once.
int steps_at_once(const talker& speaker) {
  return speaker.models().embeddings->audio_bos().is_cpu() ? 1 : accelerator_limits().speech_steps;
}

/// Times one second of speech for `count` sessions, from words to sound.
double time_speech(const talker& speaker, const std::shared_ptr<const speech::voice>& voice, int count) {
  constexpr auto words = 10;
  synthetic::tts_sessions speaking(speaker, count);
  synthetic::sounding_sessions sounding(speaker, voice, count);
  speaking.begin(words);
  const auto begin = timer::now();
  while (speaking.running()) speaking.step(steps_at_once(speaker));
  sounding.sound();
  return since(begin);
}

/// Bytes that the flow model stores for so many mel rows, keys and values of this voice being alike.
std::size_t bytes_of_rows(const speech::voice& voice, std::int64_t rows) {
  return voice.prompt.attention_bytes() * static_cast<std::size_t>(rows) /
         static_cast<std::size_t>(voice.prompt_rows());
}

} // namespace

double time_second(const thinker& model, const talker* speaker, const std::shared_ptr<const speech::voice>& voice,
                   int count) {
  return time_units(model, count) + (speaker ? time_speech(*speaker, voice, count) : 0);
}

step_cost cost_from(double one, double four) {
  const auto each = std::max((four - one) / 3, 0.0);
  return {std::max(one - each, 0.0), each};
}

void warm_up(const thinker& model, const talker* speaker, const std::shared_ptr<const speech::voice>& voice, int most) {
  time_second(model, speaker, voice, 1);
  if (model.llm().device().is_cpu()) return;
  // Other kernels serve large batches.
  for (const auto count : {std::min(32, most), most})
    if (count > 1) time_second(model, speaker, voice, count);
  constexpr int prompt = llm::kv_pool::page_tokens + 2;
  synthetic::llm_sessions sharing(model, 3, 2 * prompt); // rows in several runs of pages
  sharing.begin(synthetic::prompt::shared, prompt);
  sharing.feed(1);
  for (std::int64_t count = 1; model.hears() && count <= most; count = padded_count(count + 1)) {
    synthetic::hearing_sessions hearing(model, static_cast<int>(count));
    for (auto second = 0; second < seconds_to_graph; ++second) hearing.hear();
  }
  if (!speaker) return;
  for (std::int64_t count = 1; count <= most; count = padded_count(count + 1)) {
    synthetic::sounding_sessions sounding(*speaker, voice, static_cast<int>(count));
    for (auto window = 0; window < windows_to_full_history; ++window) sounding.sound();
  }
  // The words of a turn's second unit are masked; those of the first one need no mask.
  for (const auto form : {speech::tts_form::duplex, speech::tts_form::streamed}) {
    synthetic::tts_sessions speaking(*speaker, 1, form);
    for (const auto turn_begins : {true, false}) {
      speaking.begin(4, turn_begins);
      while (speaking.running()) speaking.step(steps_at_once(*speaker));
    }
  }
  synthetic::tts_sessions forced(*speaker, 1); // as tokens that are repeated: the host chooses
  forced.begin(4);
  forced.step();
  forced.step();
}

step_cost measure_step(const thinker& model, const talker* speaker, const std::shared_ptr<const speech::voice>& voice) {
  auto time = [&](int count) { return time_second(model, speaker, voice, count); };
  warm_up(model, speaker, voice, 4);
  auto best = [&](int count) {
    return std::min(time(count), time(count));
  }; // taking the best run ignores the load of other programs
  const auto one = best(1);
  return cost_from(one, best(4));
}

namespace {

int sessions_in_time(const step_cost& cost) {
  constexpr auto share_of_second = 0.5;
  return static_cast<int>(
      std::clamp((share_of_second - cost.fixed_seconds) / std::max(cost.session_seconds, 1e-9), 0.0, 1e6));
}

} // namespace

capacity find_capacity(const step_cost& cost, std::size_t bytes, std::size_t session_bytes, int most) {
  constexpr std::size_t countless = 1000000;
  capacity c;
  c.by_memory = static_cast<int>(std::min(bytes / session_bytes, countless));
  c.by_speed = sessions_in_time(cost);
  c.most = std::clamp(c.by_memory, 1, most);
  c.slots = slots_in_time(cost, c.most);
  return c;
}

int pages_for_sessions(int sessions, int limit, const session_memory& each, std::size_t bytes) {
  const auto count = static_cast<std::size_t>(sessions), page = each.keys_values / static_cast<std::size_t>(limit);
  const auto beside = std::min(count * each.beside_keys_values(), bytes);
  const auto pages = std::min((bytes - beside) / page, count * static_cast<std::size_t>(limit));
  return std::max(static_cast<int>(pages), limit);
}

std::size_t memory_for_sessions(std::size_t free_bytes, at::Device device) {
  return device.is_cpu() ? free_bytes / 2 : free_bytes / 10 * 9;
}

int most_sessions(at::Device device) {
  return device.is_cpu() ? 64 : 256;
}

int slots_in_time(const step_cost& cost, int most) {
  return std::clamp(sessions_in_time(cost), 1, most);
}

session_memory thinking_memory(const model_config& model, int context_tokens, at::ScalarType dtype) {
  auto size = [](int n) { return static_cast<std::size_t>(n); };
  const auto& audio = model.audio;
  session_memory m;
  m.keys_values = llm::kv_pool::bytes(model.llm, context_tokens, dtype);
  if (model.has_audio)
    m.encoder = 2 * size(audio.layers) * size(audio.max_positions) * size(audio.hidden_size) * c10::elementSize(dtype);
  return m;
}

speech_memory speech_memory_of(const talker& speaker, const speech::voice& voice) {
  return {speaker.models().tokens->row_bytes(), bytes_of_rows(voice, 1),
          voice.prompt.context_bytes() + speaker.sound().vocoder_bytes()};
}

session_memory speaking_memory(session_memory thinking, const speech_memory& speaking, std::int64_t voice_rows) {
  constexpr std::size_t long_turn = 2048; // rows: one per word or speech token
  auto m = thinking;
  m.speech_tokens = long_turn * speaking.token_row;
  m.flow = static_cast<std::size_t>(voice_rows + speech::rows_beside_voice) * speaking.mel_row + speaking.rest;
  return m;
}

std::size_t weight_bytes(const checkpoint& weights, at::ScalarType dtype) {
  std::size_t bytes = 0;
  for (const auto& name : weights.names()) {
    const auto tensor = weights.stored(name);
    bytes += static_cast<std::size_t>(tensor.numel()) *
             (tensor.is_floating_point() ? c10::elementSize(dtype) : tensor.element_size());
  }
  return bytes;
}

std::size_t voices_to_keep(const speech::voice& voice, std::size_t free_bytes) {
  constexpr std::size_t share = 16, least = 2, most = 64;
  return std::clamp(free_bytes / share / bytes_of_rows(voice, speech::longest_voice_rows), least, most);
}

std::size_t free_memory(at::Device device) {
  if (!device.is_cpu()) return at::accelerator::getMemoryInfo(device.index()).first;
  std::ifstream info("/proc/meminfo");
  for (std::string key; info >> key;) {
    std::size_t kilobytes = 0;
    info >> kilobytes;
    if (key == "MemAvailable:") return kilobytes * 1024;
    info.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  throw std::runtime_error("the free memory is unknown: set worker.max_sessions");
}

} // namespace parley::inference
