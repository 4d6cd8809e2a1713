#include "inference/engine/capacity.hpp"

#include "inference/init/presets.hpp"
#include "inference/tts/llama.hpp"
#include "inference/vocoder/flow.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

// Which cards hold how many sessions, by the sizes of the published model: its networks without their numbers.
using namespace parley::inference;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr int context_tokens = 8192;
constexpr std::int64_t voice_rows =
    302; // of HT_ref_audio.wav, 6.02 s: the published model's voice where none is chosen
const at::Device gpu(at::kCUDA, 0);

/// Tensors of these shapes, which take no memory; those with weight norm as they are once it is folded in.
speech::tensor_map shapes_of(std::span<const init::planned_tensor> planned, const std::string& prefix) {
  speech::tensor_map made("published sizes");
  constexpr std::string_view gain = ".parametrizations.weight.original0",
                             direction = ".parametrizations.weight.original1";
  for (const auto& tensor : planned) {
    if (!tensor.name.starts_with(prefix) || tensor.name.ends_with(gain)) continue;
    auto name = tensor.name.substr(prefix.size());
    if (name.ends_with(direction)) name.replace(name.size() - direction.size(), direction.size(), ".weight");
    made.put(name, at::empty(tensor.shape, at::TensorOptions(at::kMeta)));
  }
  return made;
}

std::size_t numbers_of(std::span<const init::planned_tensor> planned) {
  std::size_t sum = 0;
  for (const auto& tensor : planned) sum += tensor.values();
  return sum;
}

std::size_t context_bytes(const speech::row_contexts& of) {
  return speech::row_contexts::versions * static_cast<std::size_t>(of.rows()) * of.pool().row_bytes();
}

struct published_model {
  init::preset sizes = init::find_preset("minicpm-o-4.5");
  model_config config;
  speech::tts_config tts;
  std::size_t weights = 0;
  std::vector<init::planned_tensor> thinker = init::plan_tensors(sizes.config), flow = init::plan_flow(sizes.sound),
                                    vocoder = init::plan_vocoder(sizes.sound);

  published_model() {
    const auto folder = std::filesystem::temp_directory_path() / "parley_capacity_test";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.json") << sizes.config.dump();
    config = model_config::open(folder);
    tts = speech::tts_config::open(folder / "config.json");
    std::filesystem::remove_all(folder);
    weights = 2 * numbers_of(thinker) + 4 * (numbers_of(flow) + numbers_of(vocoder)); // bfloat16; float32
  }

  /// What a session holds on a device.
  session_memory session(bool mixed) const {
    speech::flow acoustic(shapes_of(flow, ""), {}, 5, at::empty({80, 2000}));
    speech::tts_llama tokens(shapes_of(thinker, "tts."), tts);
    if (mixed) {
      acoustic.use_bfloat16();
      tokens.use_bfloat16();
    }
    const auto& [encoder, estimator] = *acoustic.shared_memory();
    speech_memory speaking;
    speaking.token_row = tokens.row_bytes();
    speaking.mel_row =
        encoder.token_rows.row_bytes() / 2 + encoder.mel_rows.row_bytes() + estimator.keys_values.row_bytes();
    speaking.rest = context_bytes(encoder.looked) + context_bytes(encoder.raised) + context_bytes(estimator.inputs);
    return speaking_memory(thinking_memory(config, context_tokens, at::kBFloat16), speaking, voice_rows);
  }

  /// Sessions on a card of so much memory, of which CUDA and its libraries take a gibibyte.
  int sessions(std::size_t card, bool mixed) const {
    const auto free = card - weights - 1024 * mebibyte;
    return find_capacity({}, memory_for_sessions(free, gpu), session(mixed).least(), most_sessions(gpu)).by_memory;
  }
};

} // namespace

TEST_CASE("in mixed precision an H100 holds 64 sessions of 8192 rows and an H200 128") {
  const c10::InferenceMode guard;
  const published_model model;
  constexpr auto h100 = 81559 * mebibyte, h200 = 143771 * mebibyte; // as nvidia-smi tells
  const auto exact = model.session(false), mixed = model.session(true);
  CHECK(mixed.keys_values == exact.keys_values);
  CHECK(mixed.speech_tokens == exact.speech_tokens / 2);
  CHECK(mixed.flow < exact.flow * 11 / 20); // the encoder's rows stay as they are
  WARN("MiB a session beside keys and values: "
       << exact.beside_keys_values() / mebibyte << ", mixed " << mixed.beside_keys_values() / mebibyte
       << "; keys and values " << mixed.keys_values / mebibyte << "; weights " << model.weights / mebibyte);
  WARN("sessions: H100 " << model.sessions(h100, false) << ", mixed " << model.sessions(h100, true) << "; H200 "
                         << model.sessions(h200, false) << ", mixed " << model.sessions(h200, true));
  CHECK(model.sessions(h100, true) >= 64);
  CHECK(model.sessions(h200, true) >= 128);
}
