#pragma once

#include <filesystem>
#include <vector>

namespace parley::inference::verify {

/// Samples of a 16-bit mono WAV file of 16 kHz, as checkpoints hold their voices. Throws std::runtime_error naming the file
/// when it is something else.
std::vector<float> read_wav_clip(const std::filesystem::path& file);

} // namespace parley::inference::verify
