#pragma once

#include <tl/expected.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace parley::client {

/// Where a server is, and the credentials for it.
struct server_url {
  std::string host; ///< without the brackets of an IPv6 address
  std::string port;
  std::string path;      ///< path of the realtime endpoint
  bool secure = false;   ///< use TLS
  std::string key{};     ///< API key; empty = none
  std::string ca_file{}; ///< PEM: trusted certificates; empty = the system's
};

/// ws(s):// or http(s)://, optionally with /v1/realtime at the end; a query is dropped. The error says what is wrong.
tl::expected<server_url, std::string> parse_server_url(std::string_view text);

/// One or several of these, separated by commas: the addresses of one cluster. `key` and `ca_file` are of them all.
tl::expected<std::vector<server_url>, std::string> parse_server_urls(std::string_view text, const std::string& key,
                                                                     const std::string& ca_file);

} // namespace parley::client
