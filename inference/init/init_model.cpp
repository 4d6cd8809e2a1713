#include "inference/init/init_model.hpp"

#include "inference/init/byte_tokenizer.hpp"
#include "inference/init/presets.hpp"
#include "inference/init/shard_writer.hpp"
#include "inference/init/text_file.hpp"

#include <stdexcept>

namespace parley::inference {

namespace {

nlohmann::json preprocessor_json(const nlohmann::json& config) {
  return {{"image_processor_type", "MiniCPMVImageProcessor"},
          {"feature_extractor_type", "MiniCPMAAudioProcessor"},
          {"processor_class", "MiniCPMOProcessor"},
          {"max_slice_nums", config.at("slice_config").at("max_slice_nums")},
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

} // namespace

void init_model(std::string_view preset, std::uint64_t seed, const std::filesystem::path& out,
                std::uint64_t shard_bytes) {
  auto chosen = init::find_preset(preset);
  if (std::filesystem::exists(out) && !std::filesystem::is_empty(out))
    throw std::runtime_error(out.string() + ": not empty");
  std::filesystem::create_directories(out);
  init::write_text(out / "config.json", chosen.config.dump(2));
  init::write_text(out / "preprocessor_config.json", preprocessor_json(chosen.config).dump(2));
  init::write_tokenizer(out, init::byte_tokenizer(chosen.base_tokens, chosen.unk_id));
  init::write_tensors(out, init::plan_tensors(chosen.config), seed, shard_bytes);
}

} // namespace parley::inference
