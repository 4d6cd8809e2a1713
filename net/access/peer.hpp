#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace parley::net {

/// The other end of a connection.
struct peer {
  std::string address;
  std::string group; ///< the client to which limits apply: the address, or for IPv6 its /64 network
  bool loopback = false;
};

/// An IPv4-mapped IPv6 address counts as IPv4.
peer peer_at(const boost::asio::ip::address& address);

/// Proxies that say truly whom they speak for. Immutable.
class trusted_proxies {
public:
  trusted_proxies() = default;

  /// Addresses and networks, separated by spaces. \throws config::settings_error
  explicit trusted_proxies(std::string_view list);

  /// Who sent a request over a connection of `from`, with these headers X-Forwarded-For, joined by commas: the last address
  /// there that is no such proxy. Behind something unreadable nobody is looked for.
  peer client_of(const peer& from, std::string_view forwarded_for) const;

private:
  bool trusts(const boost::asio::ip::address& address) const;

  std::vector<boost::asio::ip::network_v4> v4_;
  std::vector<boost::asio::ip::network_v6> v6_;
};

} // namespace parley::net
