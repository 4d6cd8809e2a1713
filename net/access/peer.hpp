#pragma once

#include <boost/asio/ip/address.hpp>

#include <string>

namespace parley::net {

/// The other end of a connection.
struct peer {
  std::string address;
  std::string group; ///< the client to which limits apply: the address, or for IPv6 its /64 network
  bool loopback = false;
};

/// An IPv4-mapped IPv6 address counts as IPv4.
peer peer_at(const boost::asio::ip::address& address);

} // namespace parley::net
