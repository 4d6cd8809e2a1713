#pragma once

#include <boost/asio/ip/address.hpp>

#include <string>

namespace parley::net {

/// The other end of a connection.
struct peer {
  std::string address;
  std::string group; ///< whom limits apply to: the address, or of IPv6 its /64 network
  bool loopback = false;
};

/// An IPv4 address written as an IPv6 one counts as IPv4.
peer peer_at(const boost::asio::ip::address& address);

} // namespace parley::net
