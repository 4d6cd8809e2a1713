#include "net/host_name.hpp"

#include "config/load.hpp"
#include "net/text.hpp"

#include <algorithm>
#include <charconv>

namespace parley::net {
namespace {

namespace ip = boost::asio::ip;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return c >= 'a' && c <= 'z';
}

std::optional<ip::address> read_v4(std::string_view text) {
  if (!std::ranges::all_of(text, [](char c) { return is_digit(c) || c == '.'; })) return std::nullopt;
  boost::system::error_code wrong;
  auto address = ip::make_address_v4(std::string(text), wrong);
  if (wrong) return std::nullopt;
  return address;
}

std::optional<ip::address> read_v6(std::string_view text) {
  const auto belongs = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || c == ':' || c == '.'; };
  if (!std::ranges::all_of(text, belongs)) return std::nullopt;
  boost::system::error_code wrong;
  auto address = ip::make_address_v6(std::string(text), wrong);
  if (wrong) return std::nullopt;
  if (address.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, address);
  return address;
}

/// For a name in lower case without a final dot. Not one that ends in a number: browsers take it for an address.
bool is_name(std::string_view text) {
  constexpr std::size_t longest = 253;
  if (text.empty() || text.size() > longest) return false;
  std::string_view label;
  while (true) {
    const auto dot = text.find('.');
    label = text.substr(0, dot);
    const auto belongs = [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_'; };
    if (label.empty() || !std::ranges::all_of(label, belongs)) return false;
    if (dot == std::string_view::npos) break;
    text.remove_prefix(dot + 1);
  }
  const bool number = std::ranges::all_of(label, is_digit) || label.starts_with("0x");
  return !number;
}

std::uint16_t usual_port(std::string_view scheme) {
  if (scheme == "http") return 80;
  return scheme == "https" ? 443 : 0;
}

} // namespace

bool host_name::is_loopback() const {
  return address ? address->is_loopback() : name == "localhost";
}

std::optional<host_name> read_host(std::string_view text) {
  const std::string small = lower(text);
  const std::string_view host = small;
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return std::nullopt;
    if (const auto v6 = read_v6(host.substr(1, host.size() - 2))) return host_name{v6, {}};
    return std::nullopt;
  }
  if (const auto v4 = read_v4(host)) return host_name{v4, {}};
  const auto name = host.ends_with('.') ? host.substr(0, host.size() - 1) : host;
  if (!is_name(name)) return std::nullopt;
  return host_name{std::nullopt, std::string(name)};
}

std::optional<authority> read_authority(std::string_view text) {
  const auto end_of_host = text.starts_with('[') ? text.find(']') : 0;
  if (end_of_host == std::string_view::npos) return std::nullopt;
  const auto colon = text.find(':', end_of_host);
  auto host = read_host(text.substr(0, colon));
  if (!host) return std::nullopt;
  if (colon == std::string_view::npos) return authority{std::move(*host), std::nullopt};
  std::uint16_t port = 0;
  const std::string_view digits = text.substr(colon + 1);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  return authority{std::move(*host), port};
}

std::optional<page_origin> read_origin(std::string_view text) {
  const auto end = text.find("://");
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  page_origin origin;
  origin.scheme = lower(text.substr(0, end));
  const auto belongs = [](char c) { return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.'; };
  if (!is_letter(origin.scheme[0]) || !std::ranges::all_of(origin.scheme, belongs)) return std::nullopt;
  auto where = read_authority(text.substr(end + 3));
  if (!where) return std::nullopt;
  origin.host = std::move(where->host);
  origin.port = where->port.value_or(usual_port(origin.scheme));
  return origin;
}

server_names::server_names(std::string_view listening, std::string_view more) {
  const bool v6 = listening.find(':') != std::string_view::npos;
  listening_ = read_host(v6 ? "[" + std::string(listening) + "]" : std::string(listening));
  // An unspecified address means listening everywhere; it is not how the server is reached.
  if (listening_ && listening_->address && listening_->address->is_unspecified()) listening_.reset();
  while (const auto word = take_word(more)) {
    auto host = read_host(*word);
    if (!host)
      throw config::settings_error("server.names: " + std::string(*word) + " is not a host name, or has a port");
    more_.push_back(std::move(*host));
  }
}

bool server_names::knows(const host_name& host) const {
  return host.address || is_local(host) || std::ranges::find(more_, host) != more_.end();
}

bool server_names::is_local(const host_name& host) const {
  return host.is_loopback() || host == listening_;
}

} // namespace parley::net
