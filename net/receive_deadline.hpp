#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace parley::net {

/// When to give up on a message that is being received: once it is `patience` behind a rate of 16 kB/s. Being ahead of
/// that rate buys no extra time, so a peer that sends a burst and then trickles bytes is cut off too. Pure.
class receive_deadline {
public:
  using time_point = std::chrono::steady_clock::time_point;

  receive_deadline() = default;
  receive_deadline(time_point begun, std::chrono::milliseconds patience) : patience_(patience), at_(begun + patience) {}

  void received(std::size_t bytes, time_point now) {
    constexpr std::chrono::nanoseconds each_byte{62'500};
    at_ = std::min(at_ + each_byte * static_cast<std::chrono::nanoseconds::rep>(bytes), now + patience_);
  }

  time_point at() const { return at_; }

private:
  std::chrono::milliseconds patience_{};
  time_point at_;
};

} // namespace parley::net
