#pragma once

#include "protocol/openai/shared/fault.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace parley::protocol::call {

inline constexpr std::size_t most_offer_bytes = 32u << 10;

/// A client's session description (RFC 8866), as far as a call needs to know it.
struct offer {
  std::string
      sdp; ///< without candidates: clients reach the server, which sends nothing to addresses that nobody has proven to be theirs
  std::string mid;      ///< of its sound
  int payload_type = 0; ///< of Opus
};

/// Refuses what is too long or too much: a call has one track of sound, which may be Opus, and at most one section of data channels.
openai::result<offer> read_offer(std::string_view sdp);

} // namespace parley::protocol::call
