#pragma once

#include <filesystem>
#include <string>

namespace parley::inference {

/// Identifies a checkpoint without reading all of it: a hash of config.json and of each weight file's header, size and
/// some of its bytes. Copies of a checkpoint have the same one; 16 hexadecimal digits. Throws std::runtime_error naming
/// a file that can't be read.
std::string fingerprint(const std::filesystem::path& checkpoint);

} // namespace parley::inference
