#pragma once

#include <array>
#include <cstddef>
#include <span>

// The 16 kHz network of Silero VAD 6.2.3 (MIT, see LICENSE beside this file), computed without any library. Its weights
// are part of the program.
namespace parley::protocol::speech::silero {

inline constexpr std::size_t window = 512; ///< samples a step: 32 ms

/// One stream: 1.3 KB. The weights are shared by all.
class network {
public:
  /// Takes the next `window` samples; returns how probable it is that they hold speech.
  float step(std::span<const float, window> samples);

private:
  static constexpr std::size_t overlap = 64; ///< samples of the last window that the next one sees
  static constexpr std::size_t cells = 128;

  std::array<float, overlap> before_{};
  std::array<float, cells> hidden_{}, cell_{};
};

} // namespace parley::protocol::speech::silero
