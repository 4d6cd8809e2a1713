#pragma once

#include "inference/thinker.hpp"

#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace parley::inference {

/// Whole sounds of a prompt on their way to rows. They are heard in steps (`stage::clips`).
class clip_input {
public:
  /// Samples at 16 kHz, one vector a message.
  void set(std::vector<std::vector<float>> clips) { clips_ = std::move(clips); }

  bool empty() const { return clips_.empty(); }

  /// The hearing of these, begun when it is asked for first.
  thinker::clip_hearing& hearing(const thinker& model) {
    if (!hearing_) {
      const std::vector<std::span<const float>> clips(clips_.begin(), clips_.end());
      hearing_.emplace(model, clips);
    }
    return *hearing_;
  }

  /// The same of one sound that outlives this.
  thinker::clip_hearing& hearing(const thinker& model, std::span<const float> clip) {
    if (!hearing_) hearing_.emplace(model, std::span(&clip, 1));
    return *hearing_;
  }

  /// Whoever has had many steps of a long clip lets others go first.
  std::chrono::milliseconds patience() const {
    return std::chrono::milliseconds(100) * (hearing_ ? hearing_->steps() : 0);
  }

  void forget() {
    hearing_.reset();
    clips_.clear();
  }

private:
  std::vector<std::vector<float>> clips_;
  std::optional<thinker::clip_hearing> hearing_;
};

} // namespace parley::inference
