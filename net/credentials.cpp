#include "net/credentials.hpp"

#include "net/subprotocol.hpp"
#include "net/target.hpp"

#include <algorithm>
#include <cctype>

namespace parley::net {
namespace {

std::string lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

/// `host:port` or `[v6]:port` without the port.
std::string_view without_port(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(0, authority.find(']') + 1);
  return authority.substr(0, authority.find(':'));
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.ends_with(".localhost") || host.starts_with("127.");
}

/// Pages of the same machine name. The port does not count: the page may come from another server there.
bool same_host(const std::string& origin, std::string_view host) {
  const auto scheme_end = origin.find("://");
  if (scheme_end == std::string::npos) return false;
  const std::string_view page = without_port(std::string_view(origin).substr(scheme_end + 3));
  const std::string asked = lower(without_port(host));
  return page == asked || (is_loopback(page) && is_loopback(asked));
}

} // namespace

std::optional<std::string> offered_key(std::string_view authorization, std::string_view subprotocols,
                                       std::string_view query) {
  constexpr std::string_view bearer = "bearer ";
  if (authorization.size() > bearer.size() && lower(authorization.substr(0, bearer.size())) == bearer) {
    authorization.remove_prefix(authorization.find_first_not_of(' ', bearer.size() - 1));
    return std::string(authorization);
  }
  if (auto key = key_in_subprotocols(subprotocols)) return key;
  return query_value(query, "api_key");
}

bool origin_allowed(std::string_view allowed, std::string_view origin, std::string_view host) {
  if (origin.empty()) return true;
  const std::string page = lower(origin);
  while (!allowed.empty()) {
    const auto begin = allowed.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    allowed.remove_prefix(begin);
    const std::string_view word = allowed.substr(0, allowed.find(' '));
    allowed.remove_prefix(word.size());
    if (word == "*" || lower(word) == page || (word == "same" && same_host(page, host))) return true;
  }
  return false;
}

} // namespace parley::net
