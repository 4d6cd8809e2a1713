#include "net/access/peer.hpp"

#include "config/load.hpp"
#include "net/text.hpp"

#include <boost/asio/ip/address_v6.hpp>

#include <algorithm>
#include <optional>

namespace parley::net {

namespace ip = boost::asio::ip;

namespace {

constexpr int most_hops = 32;

ip::address unmapped(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  return address;
}

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t");
  return from == std::string_view::npos ? std::string_view()
                                        : text.substr(from, text.find_last_not_of(" \t") + 1 - from);
}

/// An address, perhaps with a port: 192.0.2.1, 192.0.2.1:4711, 2001:db8::1, [2001:db8::1]:4711.
std::optional<ip::address> read_hop(std::string_view text) {
  if (text.starts_with('['))
    text = text.substr(1, text.find(']') - 1);
  else if (std::count(text.begin(), text.end(), ':') == 1)
    text = text.substr(0, text.find(':'));
  boost::system::error_code wrong;
  const auto address = ip::make_address(std::string(text), wrong);
  return wrong ? std::nullopt : std::optional(unmapped(address));
}

} // namespace

peer peer_at(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) return peer_at(unmapped(address));
  peer found{address.to_string(), address.to_string(), address.is_loopback()};
  if (address.is_v6()) found.group = ip::network_v6(address.to_v6(), 64).canonical().to_string();
  return found;
}

trusted_proxies::trusted_proxies(std::string_view list) {
  while (const auto word = take_word(list)) {
    const std::string text(*word);
    const bool is_network = text.find('/') != std::string::npos;
    const bool is_v6 = text.find(':') != std::string::npos;
    boost::system::error_code wrong;
    if (is_v6)
      v6_.push_back(ip::make_network_v6(is_network ? text : text + "/128", wrong).canonical());
    else
      v4_.push_back(ip::make_network_v4(is_network ? text : text + "/32", wrong).canonical());
    if (wrong) throw config::settings_error("server.trusted_proxies: " + text + " is no address and no network");
  }
}

bool trusted_proxies::trusts(const ip::address& address) const {
  const auto holds = [](const auto& networks, const auto& one) {
    return std::any_of(networks.begin(), networks.end(), [&](const auto& each) {
      return decltype(each.canonical())(one, each.prefix_length()).canonical() == each;
    });
  };
  return address.is_v4() ? holds(v4_, address.to_v4()) : holds(v6_, address.to_v6());
}

peer trusted_proxies::client_of(const peer& from, std::string_view forwarded_for) const {
  if (v4_.empty() && v6_.empty()) return from;
  boost::system::error_code wrong;
  auto known = ip::make_address(from.address, wrong);
  if (wrong) return from;
  bool moved = false;
  for (int hops = 0; hops < most_hops && !forwarded_for.empty() && trusts(known); ++hops) {
    const auto comma = forwarded_for.rfind(',');
    const auto last = trimmed(forwarded_for.substr(comma == std::string_view::npos ? 0 : comma + 1));
    forwarded_for = forwarded_for.substr(0, comma == std::string_view::npos ? 0 : comma);
    if (last.empty()) continue;
    const auto before = read_hop(last);
    if (!before) break;
    known = *before;
    moved = true;
  }
  if (!moved) return from;
  auto client = peer_at(known);
  client.loopback = false; // whatever it says, it is not this machine's own
  return client;
}

} // namespace parley::net
