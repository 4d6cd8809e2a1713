#pragma once

#include "protocol/call/jitter_buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

struct OpusDecoder;
struct OpusEncoder;

// Opus (RFC 6716) between a call and the model. libopus itself decodes to 16 kHz and encodes from 24 kHz, so no other resampler
// is needed.
namespace parley::protocol::call {

inline constexpr int heard_rate = 16'000;                      ///< Hz, of what is decoded
inline constexpr int spoken_rate = 24'000;                     ///< Hz, of what is encoded
inline constexpr std::size_t frame_samples = spoken_rate / 50; ///< 20 ms, of what is encoded
inline constexpr std::uint32_t frame_time = rtp_rate / 50;     ///< the same on the clock of RTP

/// How long a packet is, at 48 kHz; nothing if it is not Opus. At most 120 ms.
std::optional<std::uint32_t> opus_duration(std::span<const std::byte> payload);

/// What a client says, to samples at 16 kHz.
class opus_decoder {
public:
  /// Throws std::runtime_error if libopus fails.
  opus_decoder();

  /// Appends the sound of a piece, and before it what stands for the sound that was lost: the copy that the piece may have of it,
  /// and what libopus makes up, which fades. A broken packet counts as lost.
  void decode(const jitter_buffer::piece& from, std::vector<float>& out);

private:
  struct deleter {
    void operator()(OpusDecoder* held) const;
  };
  void append(const std::byte* data, std::size_t bytes, std::uint32_t time, bool copy, std::vector<float>& out);

  std::unique_ptr<OpusDecoder, deleter> decoder_;
};

/// What the model says, at 24 kHz, to packets of 20 ms, which hold a copy of the one before for when that is lost.
class opus_encoder {
public:
  /// Throws std::runtime_error if libopus fails.
  opus_encoder();

  /// `samples`: `frame_samples` of them. Valid until the next call.
  std::span<const std::byte> encode(std::span<const float> samples);

private:
  struct deleter {
    void operator()(OpusEncoder* held) const;
  };

  std::unique_ptr<OpusEncoder, deleter> encoder_;
  std::vector<std::byte> packet_;
};

} // namespace parley::protocol::call
