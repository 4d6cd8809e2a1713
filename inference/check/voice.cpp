#include "inference/check/checks.hpp"
#include "inference/formats/file_problem.hpp"
#include "inference/formats/state_dict.hpp"
#include "inference/formats/wav_file.hpp"
#include "inference/vocoder/flow.hpp"
#include "inference/vocoder/hift_causal.hpp"
#include "inference/vocoder/hift_original.hpp"
#include "inference/vocoder/noise.hpp"
#include "inference/vocoder/token2wav.hpp"
#include "inference/voice/campplus.hpp"
#include "inference/voice/default_voice_file.hpp"
#include "inference/voice/features.hpp"
#include "inference/voice/s3_tokenizer.hpp"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>

namespace parley::inference::check {

namespace {

using speech::token2wav;
using speech::token2wav_options;

constexpr auto again = "fetch the file again; --hash tells which ones differ from the pinned revision";
constexpr auto another_voice = "name another recording by voice.default";
constexpr double published_guidance = 0.7;

/// Checks a part if its files exist; anything it throws is reported as a fault.
template<class Part>
void attempt(const std::filesystem::path& folder, std::initializer_list<const char*> files, findings& out, Part part) {
  for (const auto* name : files)
    if (file_problem(folder / name)) return; // already reported
  try {
    part();
  } catch (const speech::unknown_operator& e) {
    out.warn(std::string(e.what()) + ": no voice, answers are text alone", "tell the authors of this server");
  } catch (const c10::Error& e) {
    out.fault(*files.begin() + std::string(": ") + e.what_without_backtrace(), again);
  } catch (const std::exception& e) {
    out.fault(e.what(), again);
  }
}

void check_networks(const std::filesystem::path& folder, findings& out) {
  attempt(folder, {"flow.pt", "flow.yaml"}, out, [&] {
    const auto config = speech::flow_config::open(folder / "flow.yaml");
    if (std::abs(config.guidance - published_guidance) > 1e-6)
      out.warn("flow.yaml: inference_cfg_rate is " + std::to_string(config.guidance) + ", published is 0.7",
               "fetch flow.yaml again");
    const auto weights = speech::read_state_dict(folder / "flow.pt");
    const speech::flow made(weights.to(at::kCPU), config, token2wav_options().steps,
                            speech::noise_tables::draw(1).flow);
    out.pass("flow.pt: " + std::to_string(weights.size()) + " tensors");
  });
  const bool causal = token2wav::generation_of(folder) == token2wav::generation::causal;
  attempt(folder, {"hift.pt"}, out, [&] {
    const auto weights = speech::read_vocoder(folder / "hift.pt").to(at::kCPU);
    if (causal)
      speech::hift_causal(weights, speech::hift_config::open(folder / "config.yaml"));
    else
      speech::hift_original{weights};
    out.pass("hift.pt: " + std::to_string(weights.size()) + " tensors, of the " + (causal ? "causal" : "older") +
             " generation");
  });
  attempt(folder, {"campplus.onnx"}, out, [&] {
    const speech::campplus network(speech::read_onnx(folder / "campplus.onnx"));
    const auto heard = network.embed(at::zeros({50, 80}));
    if (heard.numel() != 192)
      throw std::runtime_error("campplus.onnx: gives " + std::to_string(heard.numel()) + " numbers, not 192");
    out.pass("campplus.onnx: every operator is known");
  });
  attempt(folder, {"speech_tokenizer_v2_25hz.onnx"}, out, [&] {
    const auto graph = speech::read_onnx(folder / "speech_tokenizer_v2_25hz.onnx");
    const speech::s3_tokenizer network(graph);
    out.pass("speech_tokenizer_v2_25hz.onnx: " + std::to_string(graph.initializers.size()) + " tensors");
  });
}

void check_default_voice(const std::filesystem::path& assets, findings& out) {
  const auto file = speech::default_voice_file(assets);
  if (!file) {
    out.warn("no default voice (assets/default_voice.wav, HT_ref_audio.wav or system_ref_audio.wav): sessions that "
             "bring none are "
             "answered by text",
             another_voice);
    return;
  }
  const auto name = "assets/" + file->filename().string();
  if (const auto problem = file_problem(*file)) {
    out.fault(name + " " + *problem, another_voice);
    return;
  }
  try {
    const auto recording = speech::read_wav_file(*file);
    const auto seconds = static_cast<double>(recording.samples.size(1)) / recording.rate;
    char length[32];
    std::snprintf(length, sizeof length, "%.2f s", seconds);
    if (recording.samples.size(1) * speech::voice_rate < speech::shortest_voice_samples * recording.rate)
      out.fault(name + " has " + length + ", which is too short for a voice", another_voice);
    else if (recording.samples.abs().max().item<float>() < 1e-3F)
      out.warn(name + " is silent", another_voice);
    else
      out.pass("default voice: " + name + ", " + length);
  } catch (const std::exception& e) {
    out.fault(e.what(), another_voice);
  }
}

} // namespace

void check_voice(const folders& where, findings& out) {
  const auto config = config_of(where.model);
  if (config.is_object() && !config.value("init_tts", true)) {
    out.note("config.json: init_tts is false: a model without a voice");
    return;
  }
  check_networks(where.assets / "assets" / "token2wav", out);
  check_default_voice(where.assets, out);
}

} // namespace parley::inference::check
