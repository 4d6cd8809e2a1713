#pragma once

#include "protocol/time_point.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

namespace parley::protocol::guest {

/// A client that sends nothing while its sound matters is silent: a piece of silence at a time stands for what it does not
/// send.
class silence {
public:
  static constexpr std::chrono::milliseconds after{300};
  static constexpr std::chrono::milliseconds step{100};

  /// Its sound came.
  void heard(time_point now) { last_ = now; }

  /// When the next piece has to stand for it, if its sound matters; none = it has never sent any.
  std::optional<time_point> due() const { return last_ ? std::optional(*last_ + after) : std::nullopt; }

  /// A piece stands for it.
  void fill(time_point now) { last_ = now - after + step; }

  /// What it did not send until now is not missed.
  void forgive(time_point now) {
    if (last_) last_ = std::max(*last_, now - after + step);
  }

private:
  std::optional<time_point> last_;
};

} // namespace parley::protocol::guest
