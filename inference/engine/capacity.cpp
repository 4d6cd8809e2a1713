#include "inference/engine/capacity.hpp"

#include "inference/duplex/audio_intake.hpp"

#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace parley::inference {

namespace {

using timer = std::chrono::steady_clock;

/// As many tokens as a talkative unit has.
constexpr int tokens_per_unit = 20;
constexpr int measured_tokens = 4;
constexpr int past_rows = 1024;

double since(timer::time_point begin) {
  return std::chrono::duration<double>(timer::now() - begin).count();
}

/// One unit of `count` sessions, each with some past.
double time_units(const thinker& model, int count) {
  llm::kv_pool pool(model.config().llm, count, past_rows + 256, model.llm().dtype(), model.llm().device());
  std::vector<llm::kv_cache> caches;
  std::vector<audio::mel_stream> streams(static_cast<std::size_t>(count));
  std::vector<audio::encoder_cache> encoders;
  std::vector<float> silence(static_cast<std::size_t>(streams.front().next_need()), 0.0F);
  std::vector<thinker::fresh_sound> sounds;
  llm::kv_segment past;
  past.keys =
      at::zeros({model.config().llm.layers, past_rows, model.config().llm.kv_heads, model.config().llm.head_dim},
                at::TensorOptions(model.llm().dtype()).device(model.llm().device()));
  past.values = past.keys;
  for (auto i = 0; i < count; ++i) {
    caches.push_back(pool.open());
    caches.back().append(past, model.llm().positions());
    if (model.hears()) encoders.push_back(model.make_encoder_cache());
  }
  auto begin = timer::now();
  if (model.hears()) {
    for (auto i = std::size_t{0}; i < caches.size(); ++i) sounds.push_back({&streams[i], &encoders[i], silence, 0});
    model.hear(sounds);
  }
  auto spent = since(begin);
  auto feed = [&](std::int64_t rows_each) {
    std::vector<llm::sequence_rows> sequences;
    std::vector<std::int64_t> last;
    for (auto& c : caches) {
      sequences.push_back({&c, rows_each});
      last.push_back(std::ssize(sequences) * rows_each - 1);
    }
    std::vector<token_id> ids(static_cast<std::size_t>(rows_each * count), 1);
    auto start = timer::now();
    auto logits = model.llm().logits(model.llm().forward(model.llm().embed(ids), sequences, last)).to(at::kCPU);
    return since(start);
  };
  spent += feed(13);
  auto tokens = 0.0;
  for (auto i = 0; i < measured_tokens; ++i) tokens += feed(1);
  return spent + tokens * tokens_per_unit / measured_tokens;
}

} // namespace

step_cost measure_step(const thinker& model) {
  time_units(model, 1); // warms up
  auto one = time_units(model, 1), four = time_units(model, 4);
  auto each = std::max((four - one) / 3, 0.0);
  return {std::max(one - each, 0.0), each};
}

capacity find_capacity(const step_cost& cost, std::size_t free_bytes, std::size_t session_bytes) {
  constexpr auto share_of_memory = 2, most = 64;
  constexpr auto share_of_second = 0.5;
  auto bounded = [](double n) { return static_cast<int>(std::clamp(n, 0.0, 1e6)); };
  capacity c;
  c.by_memory = bounded(static_cast<double>(free_bytes / share_of_memory) / static_cast<double>(session_bytes));
  c.by_speed = bounded((share_of_second - cost.fixed_seconds) / std::max(cost.session_seconds, 1e-9));
  c.slots = std::clamp(std::min(c.by_memory, c.by_speed), 1, most);
  return c;
}

std::size_t session_bytes(const thinker& model, int context_tokens) {
  const auto& audio = model.config().audio;
  auto encoder = std::size_t{2} * static_cast<std::size_t>(audio.layers) *
                 static_cast<std::size_t>(audio.max_positions) * static_cast<std::size_t>(audio.hidden_size) *
                 c10::elementSize(model.llm().dtype());
  return llm::kv_pool::bytes(model.config().llm, context_tokens, model.llm().dtype()) + (model.hears() ? encoder : 0);
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
