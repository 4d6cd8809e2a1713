#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>

namespace parley::base {

/// A regular file that is open for reading, with the size that it had when it was opened. Thread-safe.
class open_file {
public:
  /// Nothing, and why, if it cannot be opened or is no regular file. Waits for the disk.
  static std::optional<open_file> open(const std::filesystem::path& path, std::error_code& why);

  open_file(open_file&& other) noexcept;
  open_file& operator=(open_file&&) = delete;
  ~open_file();

  std::uint64_t size() const { return size_; }

  /// Fills `into` with what is at `offset`. Returns how many bytes there were: fewer only at the end of the file or if
  /// the disk fails. Waits for the disk.
  std::size_t read(std::uint64_t offset, std::span<char> into) const noexcept;

private:
  open_file(int descriptor, std::uint64_t size) : descriptor_(descriptor), size_(size) {}

  int descriptor_;
  std::uint64_t size_;
};

} // namespace parley::base
