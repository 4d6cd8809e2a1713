#pragma once

#include <filesystem>
#include <string>

namespace parley::inference {

/// Distinguishes checkpoints without reading them completely: a hash of config.json and of each weight file's header,
/// size and some of its bytes. Equal for copies of a checkpoint; 16 hexadecimal digits. Throws std::runtime_error
/// naming a file that can't be read.
std::string fingerprint(const std::filesystem::path& checkpoint);

} // namespace parley::inference
