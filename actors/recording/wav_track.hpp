#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace parley::actors {

/// A growing mono PCM16 WAV file. After every append the header matches the contents, so the file is readable whatever
/// ends the process. Every call throws std::system_error if the disk fails, or if the file would exceed WAV's limit (4
/// GiB).
class wav_track {
public:
  /// Creates a file that only its owner can read; it must not exist. `rate` in Hz.
  wav_track(const std::filesystem::path& file, std::uint32_t rate);
  ~wav_track();
  wav_track(const wav_track&) = delete;
  wav_track& operator=(const wav_track&) = delete;

  /// Appends samples, clamped to [-1, 1]; returns the number of samples before them.
  std::uint64_t append(std::span<const float> samples);

  std::uint64_t samples() const { return samples_; }

private:
  void write_header();

  int file_;
  std::uint32_t rate_;
  std::uint64_t samples_ = 0;
  std::vector<std::int16_t> scratch_;
};

} // namespace parley::actors
