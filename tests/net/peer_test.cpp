#include "net/access/peer.hpp"

#include <catch2/catch.hpp>

using boost::asio::ip::make_address;
using parley::net::peer_at;

TEST_CASE("an IPv4 address is one client, mapped or not") {
  CHECK(peer_at(make_address("192.0.2.7")).group == "192.0.2.7");
  CHECK(peer_at(make_address("::ffff:192.0.2.7")).address == "192.0.2.7");
  CHECK(peer_at(make_address("127.0.0.1")).loopback);
  CHECK(peer_at(make_address("::ffff:127.0.0.1")).loopback);
  CHECK_FALSE(peer_at(make_address("192.0.2.7")).loopback);
}

TEST_CASE("an IPv6 network is one client") {
  CHECK(peer_at(make_address("2001:db8:1:2:3::4")).group == peer_at(make_address("2001:db8:1:2::9")).group);
  CHECK(peer_at(make_address("2001:db8:1:2::9")).group != peer_at(make_address("2001:db8:1:3::9")).group);
  CHECK(peer_at(make_address("2001:db8::9")).address == "2001:db8::9");
  CHECK(peer_at(make_address("::1")).loopback);
}
