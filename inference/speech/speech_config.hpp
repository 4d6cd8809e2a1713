#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

// What the talker reads from configuration files. All other sizes come from tensor shapes (docs/model/talker.md 1).
namespace parley::inference::speech {

/// What the TTS language model does with its cache from one group of a turn to the next (docs/model/talker.md 4.1).
enum class tts_attention { full_attention, sliding_window, sliding_recompute, reindex };

/// Looks up the name used in config.json. Throws std::runtime_error for unknown names.
tts_attention tts_attention_named(const std::string& name);

/// `tts_config` of config.json; the defaults are those of the reference's configuration class.
struct tts_config {
  int heads = 12;
  int kv_heads = 12;
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
  std::int64_t audio_bos_token_id = 151687;
  std::int64_t text_eos_token_id = 151692;
  bool normalize_projected_hidden = false;
  tts_attention attention = tts_attention::sliding_recompute;
  int token_window = 300; ///< for sliding_window, in cache entries

  /// Reads `tts_config` of the file. Throws std::runtime_error naming file and key.
  static tts_config open(const std::filesystem::path& config_json);
};

/// flow.yaml. The sizes of encoder and estimator come from their tensors.
struct flow_config {
  double guidance = 0.7; ///< inference_cfg_rate

  /// Throws std::runtime_error naming the file.
  static flow_config open(const std::filesystem::path& flow_yaml);
};

/// The `hift` part of config.yaml. A folder without that file has the values below (docs/model/talker.md 1,
/// hifigan.py:80-103).
struct hift_config {
  int sample_rate = 24000; ///< Hz
  double sine_amplitude = 0.1;
  double noise_amplitude = 0.003;
  double voiced_threshold = 10; ///< f0 in Hz; above it a frame is voiced
  std::vector<std::int64_t> upsample_rates{8, 5, 3};
  std::int64_t fft = 16; ///< in samples, like the next one
  std::int64_t fft_hop = 4;
  std::vector<std::vector<std::int64_t>> dilations{{1, 3, 5}, {1, 3, 5}, {1, 3, 5}};
  std::vector<std::vector<std::int64_t>> source_dilations{{1, 3, 5}, {1, 3, 5}, {1, 3, 5}};
  double leaky_slope = 0.1;
  double limit = 0.99; ///< for the amplitude of the samples

  /// Number of the excitation's transform steps in one mel frame, and of samples in one step.
  std::int64_t rate() const;
  std::int64_t frame_samples() const { return rate() * fft_hop; }

  /// Throws std::runtime_error naming the file and what is impossible.
  static hift_config open(const std::filesystem::path& config_yaml);
};

} // namespace parley::inference::speech
