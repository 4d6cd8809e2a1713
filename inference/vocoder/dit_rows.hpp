#pragma once

#include "inference/speech/ragged.hpp"

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <vector>

// What the estimator does on the CPU and elsewhere alike.
namespace parley::inference::speech {

inline at::Tensor norm_shift_scale(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& factor) {
  return at::addcmul(shift, at::layer_norm(x, {x.size(-1)}, {}, {}, 1e-6), factor);
}

/// Rows for causal convolutions over both guidance rows of several sequences: those of every window that ends with a new
/// row, and each sequence's last ones, which the next call's windows reach back to.
struct guided_windows {
  std::vector<std::int64_t> windows, ends;
};

inline guided_windows find_windows(std::int64_t context, std::span<const std::int64_t> lengths) {
  guided_windows found;
  const rows_after_context row(context, lengths);
  for (std::int64_t guidance = 0; guidance < 2; ++guidance)
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const auto begin = guidance * row.rows(), length = lengths[i];
      for (std::int64_t n = 0; n < length * (context + 1); ++n)
        found.windows.push_back(begin + row(i, n / (context + 1) + n % (context + 1)));
      for (std::int64_t n = 0; n < context; ++n) found.ends.push_back(begin + row(i, length + n));
    }
  return found;
}

} // namespace parley::inference::speech
