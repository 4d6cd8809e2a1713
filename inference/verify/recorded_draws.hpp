#pragma once

#include "inference/random.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

namespace parley::inference::verify {

/// Replays recorded numbers in order. Throws std::runtime_error if more are requested than were recorded.
class recorded_draws final : public random_source {
public:
  explicit recorded_draws(std::vector<double> numbers) : numbers_(std::move(numbers)) {}

  double next() override {
    if (used_ == numbers_.size()) throw std::runtime_error("more draws than were recorded");
    return numbers_[used_++];
  }

  std::size_t left() const { return numbers_.size() - used_; }

private:
  std::vector<double> numbers_;
  std::size_t used_ = 0;
};

} // namespace parley::inference::verify
