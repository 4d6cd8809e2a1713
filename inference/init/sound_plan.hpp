#pragma once

#include "inference/init/tensor_plan.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace parley::inference::init {

/// Sizes of the networks of `assets/token2wav`.
struct sound_sizes {
  std::int64_t encoder, encoder_heads, encoder_ffn, encoder_blocks, up_blocks; ///< conformer of flow.pt
  std::int64_t estimator, estimator_heads, depth;                              ///< DiT of flow.pt
  std::int64_t vocoder;                                                        ///< base width of hift.pt
  std::int64_t ear, ear_blocks;                             ///< speech_tokenizer_v2_25hz.onnx; a multiple of 64
  std::int64_t speaker_head, speaker_growth, speaker_first; ///< campplus.onnx
  std::vector<std::int64_t> speaker_blocks;
};

/// The sizes published with MiniCPM-o 4.5 (docs/model/talker.md 1), and small ones with the same structure that run in
/// seconds.
sound_sizes published_sound_sizes();
sound_sizes small_sound_sizes();

/// The tensors of `flow.pt` and `hift.pt` of the older generation, by name, in the order of the file.
std::vector<planned_tensor> plan_flow(const sound_sizes& sizes);
std::vector<planned_tensor> plan_vocoder(const sound_sizes& sizes);

/// `flow.yaml` for these sizes.
std::string flow_yaml(const sound_sizes& sizes);

} // namespace parley::inference::init
