#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::net {

/// Where spans are sent: the setting `tracing.endpoint`.
struct collector {
  bool tls = false;
  std::string host; ///< a name or an address, IPv6 without brackets
  std::string port;
  std::string authority; ///< for the header Host
  std::string target;    ///< path and query
};

/// Reads http://HOST[:PORT]/PATH or https://…. No user, no fragment. \throws config::settings_error
collector read_collector(std::string_view url);

/// Names and values.
using header_list = std::vector<std::pair<std::string, std::string>>;

/// Reads headers for requests to the collector from a file, `NAME: VALUE` a line, at most 16. Empty lines and those that
/// begin with # say nothing. No message has a value, which may be a secret. \throws config::settings_error
header_list read_headers(const std::filesystem::path& file);

} // namespace parley::net
