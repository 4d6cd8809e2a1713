#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace parley::protocol::call {

/// The answer (SDP) of a server that clients reach at these addresses, whatever addresses it knows itself: they are its only
/// candidates (RFC 8445), the first of them the best. Empty = the answer as it is.
std::string told_at(std::string_view sdp, std::span<const std::string> addresses, std::uint16_t port);

} // namespace parley::protocol::call
