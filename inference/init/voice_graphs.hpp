#pragma once

#include "inference/init/onnx_writer.hpp"
#include "inference/init/sound_plan.hpp"

#include <filesystem>

namespace parley::inference::init {

/// Writes `campplus.onnx` like torch's older exporter, opset 13. At the published sizes it has 3,206 nodes, among them
/// 52 `AveragePool`s, each after a `Pad` that does nothing, and 617 initializers. Returns what was written.
onnx_writer write_speaker_network(const std::filesystem::path& file, const sound_sizes& sizes, std::uint64_t seed);

/// Writes `speech_tokenizer_v2_25hz.onnx`: at the published sizes 102 initializers, and the nodes by whose names they
/// are found. The graph can't be run, and the reference does not run it either. Returns what was written.
onnx_writer write_speech_tokenizer(const std::filesystem::path& file, const sound_sizes& sizes, std::uint64_t seed);

} // namespace parley::inference::init
