#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace parley::inference {

/// A file mapped for reading, for as long as the object lives.
class mapped_file {
public:
  /// Throws std::runtime_error naming the file.
  explicit mapped_file(const std::filesystem::path& path);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

private:
  std::span<const std::byte> bytes_;
};

} // namespace parley::inference
