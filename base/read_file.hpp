#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

namespace parley::base {

/// All bytes of a file, a pipe or a device; nothing if it cannot be read or has more than `most` of them. Waits for the
/// disk, and for whoever writes into a pipe.
std::optional<std::string> read_file(const std::filesystem::path& file,
                                     std::size_t most = std::numeric_limits<std::size_t>::max());

} // namespace parley::base
