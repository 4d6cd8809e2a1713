#pragma once

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Hosts as written in URLs and HTTP headers (RFC 3986 3.2, RFC 6454 7). They are parsed, never compared as text: a name
// can look like an address and resolve to one. Pure.
namespace parley::net {

struct host_name {
  std::optional<boost::asio::ip::address>
      address;      ///< of an IP literal; an IPv4-mapped IPv6 address becomes the IPv4 address
  std::string name; ///< any other host: lower case, without a final dot

  bool operator==(const host_name&) const = default;

  /// An address of this machine, or `localhost`. Other names prove nothing: their owners decide where they lead.
  bool is_loopback() const;
};

struct authority {
  host_name host;
  std::optional<std::uint16_t> port;
};

struct page_origin {
  std::string scheme; ///< lower case
  host_name host;
  std::uint16_t port = 0; ///< the scheme's default if none is given; 0 = unknown

  bool operator==(const page_origin&) const = default;
};

/// Reads a name, an IPv4 address, or an IPv6 address in brackets. Rejects anything that a browser might read
/// differently: short or hexadecimal IPv4 addresses, zones, non-ASCII text.
std::optional<host_name> read_host(std::string_view text);

/// Reads HOST or HOST:PORT, as in the header Host or after `://`. No user, no path.
std::optional<authority> read_authority(std::string_view text);

/// Reads the header Origin: SCHEME://HOST or SCHEME://HOST:PORT. None for `null`, which many pages may share.
std::optional<page_origin> read_origin(std::string_view text);

/// The hosts under which a server is reached.
class server_names {
public:
  /// \param listening the setting `server.host`
  /// \param more the setting `server.names`, separated by spaces
  /// \throws config::settings_error if one of `more` is not a host
  server_names(std::string_view listening, std::string_view more);

  /// Whether a page that reached us under this host came from this server: the host must be an address, which nobody
  /// can redirect, `localhost`, or one of the names in the settings.
  bool knows(const host_name& host) const;

  /// Whether only the server's own machine can use this host: a loopback address, `localhost`, or `server.host`.
  bool is_local(const host_name& host) const;

private:
  std::optional<host_name> listening_;
  std::vector<host_name> more_;
};

} // namespace parley::net
