#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace parley::protocol {

/// From 24 to 16 kHz, for streams of many small pieces: half the work of libsoxr's general resampler and a hundredth of
/// its state. Passes up to 6.9 kHz, 70 dB down from 8 kHz on; no delay, the output starts where the input does, but up to
/// 6 ms of the newest input wait for what follows.
class two_thirds {
public:
  two_thirds();

  /// Takes samples and appends what is ready.
  void feed(std::span<const float> samples, std::vector<float>& out);

private:
  std::vector<float> waiting_; ///< what the next output needs, from its first tap on
};

} // namespace parley::protocol
