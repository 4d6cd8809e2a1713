#pragma once

#include "inference/thinker.hpp"

#include <utility>
#include <vector>

namespace parley::inference {

/// Audio encoder caches of sessions that are over, for those that come.
class encoder_caches {
public:
  /// `model` outlives this.
  explicit encoder_caches(const thinker& model) : model_(model) {}

  /// An empty one. Only if the model `hears`.
  audio::encoder_cache take() {
    if (spare_.empty()) return model_.make_encoder_cache();
    auto spare = std::move(spare_.back());
    spare_.pop_back();
    spare.clear();
    return spare;
  }

  void give_back(audio::encoder_cache&& used) noexcept {
    try {
      spare_.push_back(std::move(used));
    } catch (...) { // the next session gets a new one
    }
  }

private:
  const thinker& model_;
  std::vector<audio::encoder_cache> spare_;
};

} // namespace parley::inference
