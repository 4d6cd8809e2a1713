#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

namespace parley::inference::speech {

/// A recording as stored in its file.
struct wav_sound {
  at::Tensor samples; ///< [channels, n] float32 in [-1, 1]
  int rate = 0;
};

/// Reads a WAV file with PCM (8, 16, 24 or 32 bits) or float32 samples. Throws std::runtime_error naming the file.
wav_sound read_wav_file(const std::filesystem::path& file);

} // namespace parley::inference::speech
