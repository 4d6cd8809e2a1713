#include "net/access/peer.hpp"

#include <boost/asio/ip/address_v6.hpp>
#include <boost/asio/ip/network_v6.hpp>

namespace parley::net {

namespace ip = boost::asio::ip;

peer peer_at(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return peer_at(ip::make_address_v4(ip::v4_mapped, address.to_v6()));
  peer found{address.to_string(), address.to_string(), address.is_loopback()};
  if (address.is_v6()) found.group = ip::network_v6(address.to_v6(), 64).canonical().to_string();
  return found;
}

} // namespace parley::net
