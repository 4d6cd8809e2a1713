#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

// Files of recordings on POSIX calls: nothing stays in a buffer of this process. Every call throws std::system_error
// when the disk refuses.
namespace parley::actors {

/// Makes a file that is not there yet, readable by its owner alone; its descriptor.
int make_file(const std::filesystem::path& file);

/// Writes all of it at that offset.
void write_at(int file, const void* bytes, std::size_t size, std::size_t offset);

/// A whole small file at once, in place of an older one if there is one.
void replace_file(const std::filesystem::path& file, std::string_view content);

} // namespace parley::actors
