#include "net/access/peer.hpp"

#include "config/load.hpp"

#include <catch2/catch.hpp>

#include <string>

using boost::asio::ip::make_address;
using parley::net::peer_at;
using parley::net::trusted_proxies;

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

TEST_CASE("a trusted proxy says for whom it speaks, and nobody else does") {
  const trusted_proxies proxies("10.0.0.0/8 192.0.2.1 2001:db8:1::/48");
  const auto from = [&](const char* address, const std::string& header) {
    return proxies.client_of(peer_at(make_address(address)), header).address;
  };
  CHECK(from("10.1.2.3", "203.0.113.7") == "203.0.113.7");
  CHECK(from("::ffff:10.1.2.3", "203.0.113.7") == "203.0.113.7");
  CHECK(from("192.0.2.1", "203.0.113.7") == "203.0.113.7");
  CHECK(from("2001:db8:1:2::3", "2001:db8:9::7") == "2001:db8:9::7");
  CHECK(from("192.0.2.2", "203.0.113.7") == "192.0.2.2");
  CHECK(from("203.0.113.9", "10.1.2.3") == "203.0.113.9");
  CHECK(from("10.1.2.3", "") == "10.1.2.3");
  CHECK(trusted_proxies().client_of(peer_at(make_address("127.0.0.1")), "203.0.113.7").address == "127.0.0.1");
}

TEST_CASE(
    "of several addresses the last one that is no proxy counts: what stands before it, anybody may have written") {
  const trusted_proxies proxies("10.0.0.0/8");
  const auto from = [&](const std::string& header) {
    return proxies.client_of(peer_at(make_address("10.0.0.1")), header).address;
  };
  CHECK(from("198.51.100.1, 203.0.113.7") == "203.0.113.7");
  CHECK(from("198.51.100.1,203.0.113.7,10.0.0.2 , 10.0.0.3") == "203.0.113.7");
  CHECK(from("10.0.0.9, 10.0.0.2") == "10.0.0.9");
  CHECK(from("198.51.100.1, nonsense, 10.0.0.2") == "10.0.0.2");
  CHECK(from("nonsense") == "10.0.0.1");
  CHECK(from(", ,203.0.113.7,,") == "203.0.113.7");
  CHECK(from("203.0.113.7:4711") == "203.0.113.7");
  CHECK(from("[2001:db8::7]:4711") == "2001:db8::7");
  CHECK(from("::ffff:203.0.113.7") == "203.0.113.7");
  std::string long_way = "203.0.113.7";
  for (int i = 0; i < 1000; ++i) long_way += ",10.0.0.2";
  CHECK(from(long_way) == "10.0.0.2");
}

TEST_CASE("a client behind a proxy is never this machine itself, and its IPv6 network is one client") {
  const trusted_proxies proxies("127.0.0.1 ::1");
  const auto here = peer_at(make_address("127.0.0.1"));
  CHECK_FALSE(proxies.client_of(here, "127.0.0.1").loopback);
  CHECK_FALSE(proxies.client_of(here, "203.0.113.7").loopback);
  CHECK(proxies.client_of(here, "").loopback);
  CHECK(proxies.client_of(here, "2001:db8:1:2:3::4").group == peer_at(make_address("2001:db8:1:2::9")).group);
}

TEST_CASE("what is no address and no network is refused") {
  for (const char* wrong : {"proxy.lan", "10.0.0.0/33", "10.0.0", "2001:db8::/129", "10.0.0.0/"})
    CHECK_THROWS_WITH(trusted_proxies(wrong),
                      "server.trusted_proxies: " + std::string(wrong) + " is no address and no network");
}
