#include "net/access/origin.hpp"

#include "net/subprotocol.hpp"
#include "net/target.hpp"
#include "net/text.hpp"

namespace parley::net {

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

bool is_own_page(std::string_view origin, std::string_view host, const server_names* names) {
  const auto page = read_origin(origin);
  const auto asked = read_authority(host);
  if (!page || !asked || (page->scheme != "http" && page->scheme != "https")) return false;
  if (names && !names->knows(asked->host)) return false;
  return page->host == asked->host || (page->host.is_loopback() && asked->host.is_loopback());
}

bool origin_allowed(std::string_view allowed, std::string_view origin, std::string_view host,
                    const server_names* names) {
  if (origin.empty()) return true;
  const auto page = read_origin(origin);
  while (const auto word = take_word(allowed)) {
    if (*word == "*") return true;
    if (*word == "same" ? is_own_page(origin, host, names) : page && read_origin(*word) == page) return true;
  }
  return false;
}

} // namespace parley::net
