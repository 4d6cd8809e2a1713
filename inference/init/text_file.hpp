#pragma once

#include <filesystem>
#include <string_view>

namespace parley::inference::init {

/// Writes a whole file, replacing an older one. Throws std::runtime_error naming the file.
void write_text(const std::filesystem::path& path, std::string_view text);

} // namespace parley::inference::init
