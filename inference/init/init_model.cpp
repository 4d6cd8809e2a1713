#include "inference/init/init_model.hpp"

#include "inference/formats/json_file.hpp"
#include "inference/init/byte_tokenizer.hpp"
#include "inference/init/presets.hpp"
#include "inference/init/shard_writer.hpp"
#include "inference/init/sound_plan.hpp"
#include "inference/init/state_dict_writer.hpp"
#include "inference/init/text_file.hpp"
#include "inference/init/voice_graphs.hpp"
#include "inference/init/voice_wav.hpp"
#include "inference/text/missing_merges.hpp"

#include <stdexcept>

namespace parley::inference {

namespace {

nlohmann::json preprocessor_json(const nlohmann::json& config) {
  return {{"image_processor_type", "MiniCPMVImageProcessor"},
          {"feature_extractor_type", "MiniCPMAAudioProcessor"},
          {"processor_class", "MiniCPMOProcessor"},
          {"max_slice_nums", 9},
          {"scale_resolution", config.at("slice_config").at("scale_resolution")},
          {"patch_size", config.at("patch_size")},
          {"use_image_id", config.at("use_image_id")},
          {"image_feature_size", config.at("query_num")},
          {"slice_mode", config.at("slice_mode")},
          {"audio_pool_step", config.at("audio_pool_step")},
          {"norm_mean", {0.5, 0.5, 0.5}},
          {"norm_std", {0.5, 0.5, 0.5}},
          {"version", 4.5}};
}

/// Only because the published folder has this file; the reference's chat does not read its numbers.
nlohmann::json generation_json(const nlohmann::json& config) {
  return {{"bos_token_id", config.at("bos_token_id")},
          {"do_sample", true},
          {"eos_token_id", {config.at("eos_token_id"), config.at("bos_token_id")}},
          {"pad_token_id", config.at("bos_token_id")},
          {"temperature", 0.6},
          {"top_k", 20},
          {"top_p", 0.95}};
}

nlohmann::json special_tokens_json() {
  return {{"bos_token", "<|im_start|>"},
          {"eos_token", "<|im_end|>"},
          {"pad_token", "<|endoftext|>"},
          {"unk_token", "<unk>"}};
}

/// As long as the published recordings.
constexpr std::int64_t short_voice = 96320, long_voice = 269494;

void write_assets(const std::filesystem::path& assets, const init::sound_sizes& sizes, std::uint64_t seed) {
  const auto sound = assets / "token2wav";
  std::filesystem::create_directories(sound);
  init::write_text(sound / "flow.yaml", init::flow_yaml(sizes));
  init::write_state_dict(sound / "flow.pt", init::plan_flow(sizes), seed);
  init::write_state_dict(sound / "hift.pt", init::plan_vocoder(sizes), seed);
  init::write_speaker_network(sound / "campplus.onnx", sizes, seed);
  init::write_speech_tokenizer(sound / "speech_tokenizer_v2_25hz.onnx", sizes, seed);
  init::write_voice_wav(assets / "HT_ref_audio.wav", short_voice, seed);
  init::write_voice_wav(assets / "system_ref_audio.wav", long_voice, seed + 1);
}

/// The vocabulary of a folder, including all merges.
text::tokenizer_files tokenizer_of(const std::filesystem::path& folder) {
  if (exists(folder / "tokenizer.json")) return text::read_tokenizer_json(folder / "tokenizer.json");
  auto files = text::read_vocabulary_and_merges(folder);
  const auto settings = read_json(folder / "tokenizer_config.json");
  for (const auto& [id, token] : settings.at("added_tokens_decoder").items())
    files.added.push_back({token.at("content"), std::stoll(id), token.value("special", false)});
  text::add_missing_merges(files);
  return files;
}

} // namespace

void init_model(std::string_view preset, std::uint64_t seed, const std::filesystem::path& out,
                const init_options& options) {
  auto chosen = init::find_preset(preset);
  if (std::filesystem::exists(out) && !std::filesystem::is_empty(out))
    throw std::runtime_error(out.string() + ": not empty");
  const auto words = options.tokenizer.empty() ? init::byte_tokenizer(chosen.base_tokens, chosen.unk_id)
                                               : tokenizer_of(options.tokenizer);
  chosen.config["made_by"] = "parley init-model, random weights of seed " + std::to_string(seed);
  std::filesystem::create_directories(out);
  init::write_text(out / "config.json", chosen.config.dump(2));
  init::write_text(out / "generation_config.json", generation_json(chosen.config).dump(2));
  init::write_text(out / "preprocessor_config.json", preprocessor_json(chosen.config).dump(2));
  init::write_text(out / "special_tokens_map.json", special_tokens_json().dump(2));
  init::write_tokenizer(out, words);
  if (!options.tokenizer.empty())
    copy_file(options.tokenizer / "tokenizer_config.json", out / "tokenizer_config.json",
              std::filesystem::copy_options::overwrite_existing);
  init::write_tensors(out, init::plan_tensors(chosen.config), seed, options.shard_bytes);
  write_assets(out / "assets", chosen.sound, seed);
}

} // namespace parley::inference
