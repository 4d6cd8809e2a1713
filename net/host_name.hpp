#pragma once

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Hosts as URLs and HTTP headers write them (RFC 3986 3.2, RFC 6454 7). Parsed, never compared as text: a name can be
// made to look like an address and to resolve to one. Pure.
namespace parley::net {

struct host_name {
  std::optional<boost::asio::ip::address>
      address;      ///< of an IP literal; an IPv4 address written as IPv6 is the IPv4 one
  std::string name; ///< of anything else: lower case, without a final dot

  bool operator==(const host_name&) const = default;

  /// An address of this machine, or `localhost`. Other names prove nothing: whoever owns one says where it leads.
  bool is_loopback() const;
};

struct authority {
  host_name host;
  std::optional<std::uint16_t> port;
};

struct page_origin {
  std::string scheme; ///< lower case
  host_name host;
  std::uint16_t port = 0; ///< the scheme's own if none is written; 0 = unknown

  bool operator==(const page_origin&) const = default;
};

/// A name, an IPv4 address, or an IPv6 address in brackets. Nothing that a browser would read in another way: no short
/// or hexadecimal IPv4 addresses, no zones, ASCII only.
std::optional<host_name> read_host(std::string_view text);

/// HOST or HOST:PORT: the header Host, or what stands behind `://`. No user and no path.
std::optional<authority> read_authority(std::string_view text);

/// The header Origin: SCHEME://HOST or SCHEME://HOST:PORT. None for `null`, of which many pages may be the owner.
std::optional<page_origin> read_origin(std::string_view text);

/// The hosts by which a server is reached.
class server_names {
public:
  /// \param listening the setting `server.host`
  /// \param more the setting `server.names`, separated by spaces
  /// \throws config::settings_error for one of `more` that is no host
  server_names(std::string_view listening, std::string_view more);

  /// A page that was reached under this host came from this server: the host is an address, which no one can make
  /// lead elsewhere, `localhost`, or one of the names that the settings have.
  bool knows(const host_name& host) const;

  /// Only the machine of the server reaches it so: a loopback address, `localhost`, or `server.host`.
  bool is_local(const host_name& host) const;

private:
  std::optional<host_name> listening_;
  std::vector<host_name> more_;
};

} // namespace parley::net
