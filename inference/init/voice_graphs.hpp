#pragma once

#include "inference/init/onnx_writer.hpp"
#include "inference/init/sound_plan.hpp"

#include <filesystem>

namespace parley::inference::init {

/// `campplus.onnx` as written by torch's older exporter, opset 13: at the published sizes 3,206 nodes, 52 of them a
/// `Pad` that does nothing before as many `AveragePool`s, and 617 initializers. Returns what was written.
onnx_writer write_speaker_network(const std::filesystem::path& file, const sound_sizes& sizes, std::uint64_t seed);

/// `speech_tokenizer_v2_25hz.onnx`: at the published sizes 102 initializers, and the nodes by whose names they are
/// found. It can't be run, and the reference does not run it either. Returns what was written.
onnx_writer write_speech_tokenizer(const std::filesystem::path& file, const sound_sizes& sizes, std::uint64_t seed);

} // namespace parley::inference::init
