#include "inference/verify/talker_set.hpp"

#include "inference/formats/state_dict.hpp"
#include "inference/formats/wav_file.hpp"
#include "inference/verify/families.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

namespace parley::inference::verify {

namespace {

constexpr talker_family talker_families[] = {
    {"noise", replay_talker_inputs},
    {"tts_stream_inputs", replay_talker_inputs},
    {"tts_condition", replay_tts_condition},
    {"tts_stream_", replay_tts_stream},
    {"tts_duplex_", replay_tts_duplex},
    {"tts_generate", replay_tts_generate},
    {"prompt_", replay_prompt},
    {"s3_long", replay_s3_long},
    {"pcm_unit", replay_pcm_unit},
    {"flow_setup", replay_flow_setup},
    {"flow_chunk_n", replay_flow_chunk_steps},
    {"flow_chunk_", replay_flow_chunk},
    {"flow_full", replay_flow_full},
    {"dit_unit", replay_dit_unit},
    {"vocoder_causal_decode", replay_vocoder_causal_decode},
    {"vocoder_causal", replay_vocoder_causal},
    {"vocoder_original", replay_vocoder_original},
    {"stream_turn", replay_stream_turn},
    {"stream_duplex", replay_stream_duplex},
    {"stream_flush", replay_stream_flush},
    {"stream_chat", replay_stream_chat},
    {"stream_legacy", replay_stream_legacy},
    {"nonstream_call", replay_nonstream_call},
};

} // namespace

void replay_talker(golden_set& files, const std::string& stem, report& out) {
  talker_set set(files);
  std::vector<std::string> names;
  for (const auto& [name, entry] : files.cases(stem).items())
    if (!name.starts_with('_')) names.push_back(name);
  for (const auto& entry : std::filesystem::directory_iterator(files.directory()))
    if (auto name = entry.path().stem().string();
        entry.path().extension() == ".safetensors" && !set.manifest().contains(name))
      out.unknown(name, "*");
  for (const auto& name : names) {
    auto owner = std::find_if(std::begin(talker_families), std::end(talker_families),
                              [&](const auto& family) { return name.starts_with(family.prefix); });
    if (owner == std::end(talker_families))
      out.unknown(name, "*");
    else
      owner->replay(set, name, out);
  }
}

talker_set::talker_set(golden_set& files) : files_(files), manifest_(files.cases("manifest")) {}

at::Tensor talker_set::file_samples(const std::string& prompt) {
  if (has(prompt, "file_samples")) return tensor(prompt, "file_samples");
  return speech::read_wav_file(files_.model_directory() / "voices" / entry(prompt).at("wav").get<std::string>())
      .samples;
}

const speech::tts_config& talker_set::tts_config() {
  if (!tts_config_) tts_config_ = speech::tts_config::open(files_.model_directory() / "tts" / "config.json");
  return *tts_config_;
}

const speech::tensor_map& talker_set::tts_weights() {
  if (!tts_weights_) tts_weights_ = speech::read_tts_weights(tts_checkpoint());
  return *tts_weights_;
}

const speech::tts_embeddings& talker_set::embeddings() {
  if (!embeddings_) embeddings_ = speech::tts_embeddings::open(tts_checkpoint(), tts_config());
  return *embeddings_;
}

const llm::tts_condition& talker_set::words() {
  if (!words_) {
    tts_bridge_config config;
    config.audio_bos_token_id = tts_config().audio_bos_token_id;
    config.text_eos_token_id = tts_config().text_eos_token_id;
    config.normalize_projected_hidden = tts_config().normalize_projected_hidden;
    words_.emplace(config, tts_checkpoint().view("tts."));
  }
  return *words_;
}

speech::tts_llama talker_set::llama(const nlohmann::json& recorded) {
  auto config = tts_config();
  if (auto found = recorded.find("attention_type"); found != recorded.end())
    config.attention = speech::tts_attention_named(found->get<std::string>());
  config.token_window = recorded.value("token_window_size", config.token_window);
  return {tts_weights(), config};
}

std::filesystem::path talker_set::folder(speech::token2wav::generation kind) const {
  const bool legacy = kind == speech::token2wav::generation::legacy;
  return files_.model_directory() / (legacy ? "token2wav_legacy" : "token2wav");
}

const speech::noise_tables& talker_set::noise() {
  if (!noise_)
    noise_ = {tensor("noise", "flow_rand_noise").squeeze(0),
              tensor("noise", "causal_sine_noise_u8").to(at::kFloat) * entry("noise").at("causal_scale").get<double>()};
  return *noise_;
}

std::unique_ptr<speech::token2wav> talker_set::load(speech::token2wav::generation kind, int steps) {
  return std::make_unique<speech::token2wav>(
      folder(kind), noise(),
      speech::token2wav_options{steps, true, 16, at::kDouble, speech::partial_window::by_what_it_holds});
}

const speech::token2wav& talker_set::causal() {
  if (!causal_) causal_ = load(speech::token2wav::generation::causal, steps());
  return *causal_;
}

std::unique_ptr<speech::flow> talker_set::load_flow(int steps) {
  const auto from = folder(speech::token2wav::generation::causal);
  return std::make_unique<speech::flow>(speech::read_state_dict(from / "flow.pt"),
                                        speech::flow_config::open(from / "flow.yaml"), steps, noise().flow);
}

speech::voice_features talker_set::recorded_voice(const std::string& prompt) {
  return {tensor(prompt, "s3_tokens").squeeze(0).to(at::kLong), tensor(prompt, "spk_emb").squeeze(0),
          tensor(prompt, "prompt_mel").squeeze(0)};
}

std::string talker_set::prompt_of(const std::string& wav) const {
  for (const auto& [name, entry] : manifest_.items())
    if (auto file = entry.is_object() ? entry.value("wav", "") : "";
        name.starts_with("prompt_") && (file == wav || file == wav + ".wav"))
      return name;
  throw std::runtime_error("no prompt case for " + wav);
}

std::vector<std::int64_t> as_tokens(const at::Tensor& tensor) {
  const auto flat = tensor.to(at::kCPU, at::kLong).contiguous();
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

std::vector<std::int64_t> as_tokens(const nlohmann::json& list) {
  return list.get<std::vector<std::int64_t>>();
}

void replay_talker_inputs(talker_set& set, const std::string& name, report& out) {
  out.run(name, "inputs", 0, [&](case_check& check) {
    for (const auto& [key, shape] : set.entry(name).at("tensors").items())
      check.equal(key, set.tensor(name, key).sizes().vec(), shape.at(1).get<std::vector<std::int64_t>>());
  });
}

} // namespace parley::inference::verify
