#pragma once

#include <boost/asio/ip/address.hpp>

#include <string>

namespace parley::net {

/// The other end of a connection.
struct peer {
  std::string address;
  std::string group; ///< whom the limits of one client count for: the address, of IPv6 its /64 network
  bool loopback = false;
};

/// An IPv4 address that is written as an IPv6 one counts as what it is.
peer peer_at(const boost::asio::ip::address& address);

} // namespace parley::net
