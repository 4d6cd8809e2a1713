#pragma once

#include <cstdint>
#include <vector>

// The last stage of a HiFT vocoder in plain memory: from a spectrum to samples (docs/model/talker.md 8).
namespace parley::inference::cpu {

/// Short-time spectra back to samples: overlapping windows of an inverse real transform.
class overlapped_transform {
public:
  static constexpr std::int64_t largest_size = 64;

  /// Whether there is such a transform: its size is even, at most `largest_size` and a multiple of `hop`.
  static bool takes(std::int64_t size, std::int64_t hop);

  /// `window` [size]. Throws std::runtime_error unless it `takes` the sizes.
  overlapped_transform(std::vector<float> window, std::int64_t hop);

  /// `x` [size + 2][columns], rows `stride` apart: first the logarithms of magnitudes (e^x is limited to 100), then
  /// numbers whose sines are the phases. Writes (columns - 1) * hop samples, limited to [-limit, limit].
  void samples(const float* x, std::int64_t stride, std::int64_t columns, float limit, float* to) const;

private:
  std::int64_t size_, hop_;
  std::vector<float> window_;
  std::vector<float>
      basis_; ///< [size][size + 2]: the contribution of each real and imaginary part to each position, window included
};

} // namespace parley::inference::cpu
