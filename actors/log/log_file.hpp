#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// Files of a folder that this user alone may read. Errors are in `errno`.
namespace parley::actors {

/// An open descriptor.
class owned_descriptor {
public:
  explicit owned_descriptor(int descriptor = -1) : descriptor_(descriptor) {}
  ~owned_descriptor();
  owned_descriptor(owned_descriptor&& other) noexcept;
  owned_descriptor& operator=(owned_descriptor&& other) noexcept;

  explicit operator bool() const { return descriptor_ >= 0; }
  int number() const { return descriptor_; }

private:
  int descriptor_;
};

/// A file to which bytes are only added.
class log_file {
public:
  log_file() = default;

  /// A new file, which nobody else can have opened: whatever had the name is gone.
  static log_file create(const std::filesystem::path& path);

  /// One that exists, of which the first `keep` bytes are kept.
  static log_file reopen(const std::filesystem::path& path, std::size_t keep);

  /// Adds both, one behind the other. False if the disk refuses, or the file has been removed meanwhile.
  bool append(std::string_view bytes, std::string_view more, bool sync);

  explicit operator bool() const { return static_cast<bool>(file_); }

private:
  explicit log_file(owned_descriptor file) : file_(std::move(file)) {}
  owned_descriptor file_;
};

/// Creates the folder for its user only, if it does not exist, and locks it for this process, for as long as the result
/// lives. \throws std::runtime_error if it cannot be used, others may read it, or another process has locked it
owned_descriptor lock_folder(const std::filesystem::path& folder);

/// A regular file, to be read piece by piece. Anything else, such as a pipe, which could make the reader wait, is as if it could
/// not be read.
class file_reader {
public:
  explicit file_reader(const std::filesystem::path& path);
  explicit operator bool() const { return static_cast<bool>(file_); }

  /// At most `most` bytes from there on, fewer at the end; nothing if the disk fails.
  std::optional<std::string> read(std::size_t most, std::size_t from = 0) const;

private:
  owned_descriptor file_;
};

/// At most `most` bytes of a regular file, from there on; nothing if it cannot be read.
std::optional<std::string> read_part(const std::filesystem::path& path, std::size_t most, std::size_t from = 0);

} // namespace parley::actors
