#pragma once

#include "inference/quirks.hpp"
#include "inference/thinker.hpp"

#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace parley::inference {

/// Whole sounds of a prompt, encoded into rows in steps (`stage::clips`).
class clip_input {
public:
  /// Samples at 16 kHz, one vector a message.
  void set(std::vector<std::vector<float>> clips) { clips_ = std::move(clips); }

  bool empty() const { return clips_.empty(); }

  /// The encoding of these sounds, started on first use.
  thinker::clip_hearing& hearing(const thinker& model, const quirks& how) {
    if (!hearing_) {
      const std::vector<std::span<const float>> clips(clips_.begin(), clips_.end());
      hearing_.emplace(model, clips, how.clips_are_padded);
    }
    return *hearing_;
  }

  /// The same for one sound, which must outlive this.
  thinker::clip_hearing& hearing(const thinker& model, const quirks& how, std::span<const float> clip) {
    if (!hearing_) hearing_.emplace(model, std::span(&clip, 1), how.clips_are_padded);
    return *hearing_;
  }

  /// A long clip that has had many steps lets others go first.
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
