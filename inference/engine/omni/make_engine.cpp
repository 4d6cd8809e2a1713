#include "config/settings.hpp"
#include "inference/duplex/unit_cost.hpp"
#include "inference/engine/capacity.hpp"
#include "inference/engine/default_model.hpp"
#include "inference/engine/device.hpp"
#include "inference/engine/draw_trace.hpp"
#include "inference/engine/fingerprint.hpp"
#include "inference/engine/omni/omni_engine.hpp"
#include "inference/formats/wav_file.hpp"
#include "inference/logger.hpp"
#include "inference/voice/default_voice_file.hpp"
#include "inference/voice/features.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <chrono>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace parley::inference {

namespace {

/// For a small model, splitting work between threads costs more than it gains, and a spinning helper thread occupies
/// the core that another process needs. With two busy cores, a unit of the embedded model took seconds with two threads
/// and milliseconds with one.
int find_threads(const config::settings& settings, const model_config& model) {
  if (settings.worker.threads > 0) return settings.worker.threads;
  return model.llm.hidden_size < small_hidden_size ? 1 : at::get_num_threads();
}

/// `voice.default`, else the model's own; null when there is none.
std::shared_ptr<const speech::voice> default_voice(const config::settings& settings,
                                                   const std::filesystem::path& directory,
                                                   const speech::token2wav& sound) {
  const auto& chosen = settings.voice.default_wav;
  const auto own = speech::default_voice_file(directory);
  if (chosen.empty() && !own) {
    log_info("engine: no default voice: sessions that bring none are answered by text");
    return nullptr;
  }
  const auto file = chosen.empty() ? *own : std::filesystem::path(chosen);
  auto recording = speech::read_wav_file(file);
  const auto longest = speech::longest_voice_samples * recording.rate / speech::voice_rate;
  recording.samples = recording.samples.slice(1, 0, longest);
  if (recording.samples.size(1) < speech::shortest_voice_samples * recording.rate / speech::voice_rate)
    throw std::runtime_error(file.string() + ": too short for a voice");
  return sound.prepare(sound.ear().hear(recording.samples, recording.rate));
}

/// A voice for measurements if there is no default voice.
std::shared_ptr<const speech::voice> silent_voice(const speech::token2wav& sound) {
  const std::vector<float> second(speech::voice_rate);
  return sound.prepare(sound.ear().hear(second));
}

/// A size in mebibytes, for log messages.
std::string mebibytes(std::size_t bytes) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << static_cast<double>(bytes) / (1024.0 * 1024.0) << " MiB";
  return text.str();
}

void tell_loading(std::chrono::duration<double> took, at::ScalarType precision, at::Device device) {
  std::ostringstream line;
  line << std::fixed << std::setprecision(1) << "engine: loaded in " << took.count() << " s, " << precision << " on "
       << device;
  log_info(line.str());
}

void tell_memory(const checkpoint& weights, at::ScalarType precision, int context, const session_memory& each,
                 std::size_t free, std::size_t for_sessions) {
  log_info("engine: weights " + mebibytes(weight_bytes(weights, precision)) + "; a session of " +
           std::to_string(context) + " tokens holds up to " + mebibytes(each.sum()) + ": keys and values " +
           mebibytes(each.keys_values) + ", audio encoder " + mebibytes(each.encoder) + ", speech tokens " +
           mebibytes(each.speech_tokens) + ", flow " + mebibytes(each.flow));
  log_info("engine: " + mebibytes(free) + " free, fits " + std::to_string(for_sessions / each.sum()) + " sessions of " +
           std::to_string(context) + " tokens in the " + mebibytes(for_sessions) + " of it that sessions may take");
}

/// The result of `find_capacity`, with the speed on which it is based; a configured number has no speed.
struct found_slots {
  capacity found;
  std::optional<step_cost> cost;
};

found_slots find_slots(const thinker& model, const talker* speaker, const std::shared_ptr<const speech::voice>& voice,
                       int wanted, const session_memory& each, std::size_t free) {
  const auto device = model.llm().device();
  if (wanted > 0) {
    const auto count = static_cast<std::size_t>(wanted);
    if (each.sum() > free / count && each.least() > memory_for_sessions(free, device) / count)
      throw std::runtime_error("worker.max_sessions: " + std::to_string(wanted) +
                               " sessions need more memory than is free");
    log_info("engine: " + std::to_string(wanted) + " slots as set");
    // On a GPU a kernel is loaded when it is first launched.
    if (!device.is_cpu()) warm_up(model, speaker, voice, wanted);
    return {{wanted, 0, 0, wanted}, {}};
  }
  const auto cost = measure_step(model, speaker, voice);
  const auto found = find_capacity(cost, memory_for_sessions(free, device), each.least(), most_sessions(device));
  std::ostringstream line;
  line << std::fixed << std::setprecision(1) << "engine: " << found.slots << " slots at first, " << found.most
       << " at most; memory allows " << found.by_memory << ", speed allows " << found.by_speed << " (a second costs "
       << cost.fixed_seconds * 1e3 << " ms, and " << cost.session_seconds * 1e3 << " ms a session)";
  log_info(line.str());
  return {found, cost};
}

void tell_slots(int before, int now, const step_cost& cost) {
  std::ostringstream line;
  line << std::fixed << std::setprecision(1) << "engine: " << now << " slots instead of " << before
       << ", measured again while idle (a second costs " << cost.fixed_seconds * 1e3 << " ms, and "
       << cost.session_seconds * 1e3 << " ms a session)";
  log_info(line.str());
}

std::unique_ptr<engine> make(const config::settings& settings, engine::sink sink) {
  c10::InferenceMode guard;
  const auto begin = std::chrono::steady_clock::now();
  auto directory =
      settings.worker.model.empty() ? default_model_directory() : std::filesystem::path(settings.worker.model);
  auto sizes = model_config::open(directory);
  const auto device = find_device(settings.worker.device, sizes.llm.hidden_size);
  const auto precision = find_dtype(settings.engine.precision, device, sizes.llm.hidden_size);
  set_up_accelerators(float32_products::rounded);
  if (settings.engine.quant == config::quantization::int8 && !device.is_cpu())
    throw std::runtime_error("engine.quant: int8 is for the CPU; on " + device.str() + " use int4, or none");
  const int threads = find_threads(settings, sizes);
  at::set_num_threads(threads);
  const auto weights = checkpoint::open(directory, settings.worker.assets);
  auto model = std::make_shared<const thinker>(weights, std::move(sizes), precision, device, settings.engine.quant);
  log_info("engine: the language model's weights take " + mebibytes(model->llm().weight_bytes()) +
           (settings.engine.quant == config::quantization::none ? "" : ", its layers quantized"));
  const auto quirk = settings.engine.reference_quirks ? quirks::literal() : quirks{};
  const auto speaker = talker::open(weights, model->config(), quirk, precision, device, settings.engine.speech);
  tell_loading(std::chrono::steady_clock::now() - begin, precision, device);

  const auto& llm = model->config().llm;
  auto context = settings.engine.context_tokens;
  omni_engine::options how;
  how.info.model = model->config().name;
  how.info.fingerprint = fingerprint(directory);
  how.info.device = device.str();
  if (!device.is_cpu()) {
    how.device_works = device_probe(device);
    how.limits = accelerator_limits();
  }
  how.info.context_tokens = context;
  how.info.hears = model->hears();
  how.info.sees = model->sees();
  how.info.speaks = speaker != nullptr;
  how.info.unit = duplex::unit_cost_of(model->config());
  const auto free = free_memory(device);
  std::shared_ptr<const speech::voice> measured;
  if (speaker) {
    measured = how.default_voice = default_voice(settings, weights.assets(), speaker->sound());
    if (!measured) measured = silent_voice(speaker->sound());
    how.kept_voices = voices_to_keep(*measured, free);
  }
  auto each = thinking_memory(model->config(), context, precision);
  if (speaker)
    each = speaking_memory(each, speech_memory_of(*speaker, *measured),
                           how.default_voice ? how.default_voice->prompt_rows() : speech::longest_voice_rows);
  const auto for_sessions = memory_for_sessions(free, device);
  tell_memory(weights, precision, context, each, free, for_sessions);
  const auto slots = find_slots(*model, speaker.get(), measured, settings.worker.max_sessions, each, free);
  how.info.slots = slots.found.slots;
  how.most_sessions = slots.found.most;
  if (slots.cost) {
    how.slots_by_pace.emplace(*slots.cost, slots.found.most);
    how.time_second = [model, speaker, measured](int sessions) {
      return time_second(*model, speaker.get(), measured, sessions);
    };
    how.slots_measured = tell_slots;
  }
  how.how = quirk;
  how.seed = settings.engine.seed;
  how.threads = threads;
  if (traces()) how.draws = std::make_shared<draw_trace>();
  const auto limit = llm::kv_pool::pages_of(context);
  const auto whole = how.most_sessions * limit;
  const auto fits = each.sum() <= free / static_cast<std::size_t>(how.most_sessions) && !slots.cost;
  const auto pages = fits ? whole : pages_for_sessions(how.most_sessions, limit, each, for_sessions);
  if (pages < whole)
    log_info("engine: memory for " + std::to_string(pages / limit) +
             " full contexts; with more sessions, the newest wait");
  model->reserve_encoder_caches(how.most_sessions);
  llm::kv_pool pool(llm, {pages, limit}, precision, device);
  log_info("engine: a pool of " + std::to_string(pool.pages()) + " pages of " +
           std::to_string(llm::kv_pool::page_tokens) + " tokens, " +
           mebibytes(static_cast<std::size_t>(pool.pages()) *
                     llm::kv_pool::bytes(llm, llm::kv_pool::page_tokens, precision)));
  return std::make_unique<omni_engine>(std::move(model), std::move(speaker), std::move(pool), std::move(how),
                                       std::move(sink));
}

} // namespace

std::unique_ptr<engine> make_engine(const config::settings& settings, engine::sink sink) {
  try {
    return make(settings, std::move(sink));
  } catch (const c10::Error& e) {
    throw std::runtime_error(e.what_without_backtrace());
  }
}

} // namespace parley::inference
