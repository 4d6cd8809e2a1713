#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace parley::actors {

/// A mono PCM16 WAV file that grows. After every append the header says what is there: whatever ends the process, the
/// file opens. Every call throws std::system_error when the disk refuses, or the file would be larger than WAV can say
/// (4 GiB).
class wav_track {
public:
  /// Makes the file, readable by its owner alone. It may not exist. `rate` in Hz.
  wav_track(const std::filesystem::path& file, std::uint32_t rate);
  ~wav_track();
  wav_track(const wav_track&) = delete;
  wav_track& operator=(const wav_track&) = delete;

  /// Appends samples, clamped to [-1, 1]; gives back the number of those before them.
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
