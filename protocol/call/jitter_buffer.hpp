#pragma once

#include "protocol/call/rtp.hpp"
#include "protocol/time_point.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace parley::protocol::call {

/// Puts the packets of one stream in order. What plays them is a model and no loudspeaker, which hears a packet as soon as
/// those before it are there: only what follows a gap waits, for `patience` from when it came. Then what is missing is lost. Bounded.
class jitter_buffer {
public:
  static constexpr std::chrono::milliseconds patience{120};
  static constexpr std::size_t most_waiting = 100; ///< packets; what comes beyond them makes the gap a loss
  static constexpr std::uint32_t longest_gap =
      rtp_rate; ///< a second; a longer one is a new beginning, and nothing was lost

  /// What is to be heard next.
  struct piece {
    std::uint32_t lost = 0;    ///< time of the stream before it that was lost, at 48 kHz
    bool next_of_lost = false; ///< it follows what was lost at once, so it may hold a copy of the end of that (FEC)
    std::vector<std::byte> payload; ///< one packet of Opus
  };

  /// A packet has come, which lasts `duration` at 48 kHz. False: it is a copy, or comes too late, and is dropped.
  bool push(const rtp_packet& packet, std::uint32_t duration, time_point now);

  /// The next piece; nothing if there is none, or if it waits.
  std::optional<piece> pop(time_point now);

  std::size_t waiting() const { return waiting_.size(); }

private:
  struct kept {
    std::uint32_t timestamp;
    std::uint32_t duration;
    time_point came;
    std::vector<std::byte> payload;
  };

  std::map<std::int64_t, kept> waiting_; ///< by sequence number, counted on beyond 16 bits
  std::optional<std::int64_t> newest_;   ///< of all that came
  std::int64_t next_ = 0;                ///< that is to be heard next
  std::uint32_t next_timestamp_ = 0;
  std::uint32_t source_ = 0;
};

} // namespace parley::protocol::call
