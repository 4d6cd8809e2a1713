#pragma once

#include "inference/formats/model_kind.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

namespace parley::inference {

/// `config.json` and `preprocessor_config.json` of a checkpoint, read unchanged; the defaults are those of the
/// reference's configuration classes for absent keys (docs/model/thinker.md 0). Every size of the model comes from here
/// or from tensor shapes.

/// Qwen3 (keys at the top level of config.json).
struct llm_config {
  int vocab_size = 151936;
  int hidden_size = 4096;
  int intermediate_size = 22016;
  int layers = 32;
  int heads = 32;
  int kv_heads = 32;
  int head_dim = 128; ///< query width = heads * head_dim, which is not hidden_size
  double rms_norm_eps = 1e-6;
  double rope_theta = 1e6; ///< required in config.json
  int max_positions = 32768;
};

/// SigLIP NaViT and the resampler after it.
struct vision_config {
  int hidden_size = 1152;
  int intermediate_size = 4304;
  int layers = 27; ///< layers in use: excludes the last stored layer if config says to drop it
  int heads = 16;
  int patch_size = 14;
  int image_size = 980;
  double layer_norm_eps = 1e-6;
  int batch_size = 16;     ///< slices per ViT call in the reference
  int query_num = 64;      ///< rows per slice
  int resampler_heads = 0; ///< hidden_size of the LLM / 128
  int max_slice_nums = 9;
  int scale_resolution = 448;
  bool slice_mode = true;
  bool use_image_id = true;
  std::array<double, 3> norm_mean = {0.5, 0.5, 0.5};
  std::array<double, 3> norm_std = {0.5, 0.5, 0.5};
};

/// Whisper-style encoder and the projector after it.
struct audio_config {
  int hidden_size = 1024;
  int layers = 24;
  int heads = 16;
  int ffn_size = 4096;
  int mel_bins = 80;
  int max_positions = 1500;
  int pool_step = 5;          ///< frames averaged into one row of the LLM's input
  double chunk_seconds = 1.0; ///< offline attention block; <= 0 is full attention
};

/// What the thinker must know about the talker (docs/model/thinker.md 5.5, 6.3).
struct tts_bridge_config {
  bool present = false; ///< config.json has a tts_config
  int hidden_size = 768;
  int text_vocab_size = 152064;
  std::int64_t audio_bos_token_id = 151687;
  std::int64_t text_eos_token_id = 151692;
  bool normalize_projected_hidden = false; ///< chat only; the duplex condition is always normalised
};

/// All parts of a checkpoint's configuration.
struct model_config {
  std::string name; ///< of the checkpoint folder, or of the repository that a cache folder represents
  weight_format stored;
  llm_config llm;
  vision_config vision;
  audio_config audio;
  tts_bridge_config tts;
  bool has_vision = true; ///< `init_vision`, and so on: whether the part exists
  bool has_audio = true;
  bool has_tts = true;
  bool stream_input = false; ///< how a chat prompt distributes its sounds (docs/model/thinker.md 6.2)

  /// Throws std::runtime_error naming file and key for a missing file, an impossible value, or a model other than the
  /// implemented one (`model_kind_problems`).
  static model_config open(const std::filesystem::path& directory);
};

} // namespace parley::inference
