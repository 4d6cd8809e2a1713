#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// RTP (RFC 3550 5.1), as far as a call's sound needs it: one mono stream of Opus, whose clock runs at 48 kHz (RFC 7587).
namespace parley::protocol::call {

inline constexpr int rtp_rate = 48'000; ///< Hz
inline constexpr std::size_t most_rtp_payload =
    1'275; ///< bytes: the longest frame of Opus (RFC 6716 3.2.1), in any packet of ours or theirs

/// A packet that came. `payload` is a view of it.
struct rtp_packet {
  std::uint8_t payload_type = 0;
  bool marker = false;
  std::uint16_t sequence = 0;
  std::uint32_t timestamp = 0;
  std::uint32_t source = 0; ///< SSRC
  std::span<const std::byte> payload{};
};

/// Nothing if it is not RTP, has nothing in it or too much.
std::optional<rtp_packet> read_rtp(std::span<const std::byte> bytes);

/// As it is sent.
std::vector<std::byte> write_rtp(const rtp_packet& packet);

} // namespace parley::protocol::call
