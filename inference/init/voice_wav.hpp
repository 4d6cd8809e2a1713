#pragma once

#include <cstdint>
#include <filesystem>

namespace parley::inference::init {

/// Writes something similar to a voice, 16 kHz mono PCM16: vowels made from a buzz, with pauses. Throws
/// std::runtime_error naming the file.
void write_voice_wav(const std::filesystem::path& file, std::int64_t samples, std::uint64_t seed);

} // namespace parley::inference::init
