#include "inference/vision/sight.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace parley::inference::vision {

sight::sight(const vision_config& config, int hidden_size, const weights& encoder_weights,
             const weights& resampler_weights)
    : batch_size_(static_cast<std::size_t>(config.batch_size)), encoder_(config, encoder_weights),
      resampler_(config, hidden_size, resampler_weights) {}

at::Tensor sight::see(std::span<const patch_grid* const> pieces) const {
  std::vector<at::Tensor> rows;
  for (auto left = pieces; !left.empty();) {
    auto batch = left.first(std::min(batch_size_, left.size()));
    rows.push_back(resampler_.resample(encoder_.encode(batch), batch));
    left = left.subspan(batch.size());
  }
  return rows.size() == 1 ? rows.front() : at::cat(rows);
}

slicing slicing_of(const vision_config& config) {
  return {config.scale_resolution, config.patch_size, config.slice_mode};
}

} // namespace parley::inference::vision
