#pragma once

#include "inference/random.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace parley::inference::speech {

/// Random numbers, float32, that all streams of an engine share (docs/model/talker.md 7.4, 10). All draws sound equally
/// good; replays use the recorded ones.
struct noise_tables {
  at::Tensor flow;       ///< [bins, columns] Gaussian, the flow's starting point
  at::Tensor excitation; ///< [rows, harmonics] uniform in [0, 1), read cyclically by the causal vocoder

  /// Enough columns for the longest stream, and 30 s of excitation.
  static noise_tables draw(std::uint64_t seed, std::int64_t bins = 80, std::int64_t harmonics = 9);
};

/// Normally distributed numbers, float32 [1, rows, columns].
at::Tensor gaussian_noise(random_source& chance, std::int64_t rows, std::int64_t columns);

/// The uniform numbers from which `gaussian_noise` makes its own, two for each two of them: the first of a pair in (0, 1],
/// the other in [0, 1). `pairs` has an even size.
void draw_pairs(random_source& chance, std::span<float> pairs);

/// Normally distributed numbers [2 * pairs] from such pairs [pairs, 2], on any device. Made in float32, so they differ from
/// those of `gaussian_noise` by rounding.
at::Tensor gaussian_of(const at::Tensor& pairs);

} // namespace parley::inference::speech
