#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

// Writes files with POSIX calls, so that nothing stays in a buffer of this process. Every call throws std::system_error if
// the disk fails.
namespace parley::base {

/// Creates a new file that only its owner can read; returns its descriptor.
int make_file(const std::filesystem::path& file);

/// Writes all bytes at that offset.
void write_at(int file, const void* bytes, std::size_t size, std::size_t offset);

/// Writes a whole small file atomically, replacing an older one. With `synced` it returns once the disk has the bytes.
void replace_file(const std::filesystem::path& file, std::string_view content, bool synced = false,
                  unsigned permissions = 0600);

} // namespace parley::base
