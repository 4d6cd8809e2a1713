#include "inference/verify/e2e_set.hpp"

#include "inference/formats/wav_file.hpp"
#include "inference/verify/talker_set.hpp"
#include "inference/voice/features.hpp"

#include <ATen/ATen.h>

namespace parley::inference::verify {

namespace {

/// The talker as the reference runs it, with recorded noise.
speech::speech_models load_speech(golden_set& files) {
  const auto& manifest = files.cases("manifest");
  const auto& recorded = files.tensors("noise");
  const speech::noise_tables noise{recorded.tensor("flow_rand_noise").squeeze(0).to(at::kFloat),
                                   recorded.tensor("causal_sine_noise_u8").to(at::kFloat) *
                                       manifest.at("sine_noise_scale").get<double>()};
  const speech::token2wav_options options{manifest.at("n_timesteps").get<int>(), true, 16, at::kDouble,
                                          speech::partial_window::by_what_it_holds};
  const auto& weights = files.weights();
  speech::speech_models made;
  made.config = speech::tts_config::open(files.model_directory() / "config.json");
  made.embeddings =
      std::make_unique<speech::tts_embeddings>(speech::tts_embeddings::open(weights, made.config, files.device()));
  made.tokens = std::make_unique<speech::tts_llama>(speech::read_tts_weights(weights, files.device()), made.config);
  made.sound = std::make_unique<speech::token2wav>(files.model_directory() / "assets" / "token2wav", noise, options,
                                                   files.device());
  return made;
}

} // namespace

e2e_set::e2e_set(golden_set& files)
    : files_(files), model_(files.weights(), files.config(), files.dtype(), files.device()),
      words_(files.config().tts, files.view("tts.")), speech_(load_speech(files)) {}

std::vector<float> e2e_set::voice_clip(const std::string& name) {
  if (files_.has_clip(name)) return files_.clip(name, 0, 0);
  const auto sound = speech::read_wav_file(files_.model_directory() / name);
  if (sound.rate != speech::voice_rate) throw std::runtime_error(name + ": not 16 kHz");
  const auto first = sound.samples[0].contiguous();
  return {first.const_data_ptr<float>(), first.const_data_ptr<float>() + first.numel()};
}

std::shared_ptr<const speech::voice> e2e_set::voice(const std::string& name) {
  auto& made = voices_[name];
  if (!made) made = speech_.sound->prepare(speech_.sound->ear().hear(voice_clip(name)));
  return made;
}

void check_voice(const speech::voice& mine, const nlohmann::json& recorded, const safetensors_file& golden,
                 case_check& check) {
  check.equal("voice_tokens", as_tokens(mine.heard.tokens), as_tokens(recorded.at("voice_tokens")));
  check.equal("voice_mel_rows", mine.prompt_rows(), recorded.at("voice_mel_rows").get<std::int64_t>());
  check.close("spk_emb", mine.heard.speaker.unsqueeze(0), golden.tensor("spk_emb"), talker_tolerance::module);
}

void replay_e2e(golden_set& files, report& out) {
  for (const auto& name : files.cases("manifest").at("goldens"))
    if (const auto listed = name.get<std::string>(); !exists(files.directory() / (listed + ".json")))
      out.unknown(listed, "*");
  e2e_set set(files);
  for (const auto& stem : files.stems("")) {
    if (stem == "manifest") continue; // describes how the recordings were made
    try {
      const auto& recorded = files.cases(stem);
      if (recorded.contains("units"))
        replay_e2e_duplex(set, stem, out);
      else if (recorded.contains("llm_chunks"))
        replay_e2e_stream(set, stem, out);
      else if (recorded.contains("generated_ids"))
        replay_e2e_answer(set, stem, out);
      else
        out.unknown(stem, "*");
    } catch (const std::exception&) {
      out.run(stem, "*", 0, [&](case_check&) { throw; });
    }
  }
}

} // namespace parley::inference::verify
