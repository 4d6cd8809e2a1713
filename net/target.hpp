#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace parley::net {

/// The parts of an HTTP request target; both still percent-encoded.
struct target {
  std::string_view path;
  std::string_view query; ///< without '?'
};

/// Drops a fragment. The result refers to `text`.
target split_target(std::string_view text);

/// The same with single slashes in its path, and none at the end; nothing if it is so already, or no path. Clients make
/// such targets of a base URL that ends with a slash.
std::optional<std::string> tidy_target(std::string_view text);

/// `%41` becomes `A`; invalid escapes stay as they are.
std::string percent_decode(std::string_view text);

/// The last value of `key` in a query, percent-decoded; empty if the key has no value (docs/protocol.md 1).
std::optional<std::string> query_value(std::string_view query, std::string_view key);

} // namespace parley::net
