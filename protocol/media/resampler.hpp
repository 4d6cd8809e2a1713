#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct soxr;

namespace parley::protocol {

/// Changes the rate of mono samples block by block (libsoxr, high quality, no delay: the output starts where the input
/// does). Equal rates copy. Rates in Hz.
class resampler {
public:
  /// Throws std::runtime_error if libsoxr fails.
  resampler(double from_rate, double to_rate);

  /// Takes samples and appends what is ready. Samples are in [-1, 1]; results may slightly exceed that range.
  void feed(std::span<const float> samples, std::vector<float>& out);

  /// Appends the remaining samples.
  void finish(std::vector<float>& out);

private:
  struct deleter {
    void operator()(soxr* held) const;
  };

  double ratio_;
  std::unique_ptr<soxr, deleter> soxr_; ///< null = same rate
};

} // namespace parley::protocol
