#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace parley::net {

/// Follows CAF's protocol in the bytes of a link: headers of fixed size, each with the length of the payload that
/// follows. CAF trusts a header and allocates what it promises at once, so the last byte of a large frame's header is
/// held back until the whole frame has arrived. Knows nothing else of the protocol. Pure.
class node_frames {
public:
  static constexpr std::size_t header_bytes = 32;
  static constexpr std::size_t trusted = 1u << 20; ///< payloads up to this size are forwarded as they arrive

  /// No payload may be longer than `largest`.
  explicit node_frames(std::size_t largest) : largest_(largest) {}

  /// Takes the next bytes of the stream. False if a header promises too much; the stream is then unusable.
  [[nodiscard]] bool feed(std::string_view bytes);

  /// How many of the last bytes must be held back for now.
  std::size_t held() const { return held_; }

private:
  const std::size_t largest_;
  std::size_t header_ = 0; ///< bytes of the current header that have arrived
  std::uint32_t length_ = 0;
  std::size_t payload_left_ = 0;
  std::size_t held_ = 0;
};

} // namespace parley::net
