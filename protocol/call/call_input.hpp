#pragma once

#include "protocol/call/jitter_buffer.hpp"
#include "protocol/call/opus_stream.hpp"
#include "protocol/time_point.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace parley::protocol::call {

/// What a call's client says: packets in, samples out. A client may be 10 s ahead of time, after a pause of its network; packets
/// that come faster are dropped before anything is done with them. Packets of another type or stream are, too.
class call_input {
public:
  static constexpr std::size_t piece_samples = heard_rate / 25; ///< 40 ms: what is passed on at once
  static constexpr double most_ahead_s = 10;
  static constexpr double pace = 1.1; ///< seconds of sound a second, when that is used up: a client's clock may be fast

  explicit call_input(int payload_type) : payload_type_(payload_type) {}

  /// Takes a packet as it came. Returns what can be heard now; empty = less than a piece.
  std::vector<float> take(std::span<const std::byte> bytes, time_point now);

private:
  bool may_take(double seconds, time_point now);

  const int payload_type_;
  jitter_buffer buffer_;
  opus_decoder decoder_;
  std::vector<float> heard_;
  double left_s_ = most_ahead_s;
  time_point counted_at_{};
};

} // namespace parley::protocol::call
