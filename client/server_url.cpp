#include "client/server_url.hpp"

#include <algorithm>
#include <utility>

namespace parley::client {
namespace {

constexpr std::string_view endpoint = "/v1/realtime";

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

} // namespace

tl::expected<server_url, std::string> parse_server_url(std::string_view text) {
  const std::string whole(text);
  const auto scheme_end = text.find("://");
  const std::string_view scheme = text.substr(0, scheme_end == std::string_view::npos ? 0 : scheme_end);
  const bool secure = scheme == "wss" || scheme == "https";
  if (!secure && scheme != "ws" && scheme != "http")
    return tl::unexpected(whole + ": the URL must start with ws://, wss://, http:// or https://");
  text.remove_prefix(scheme_end + 3);
  text = text.substr(0, text.find_first_of("?#"));

  const std::string_view authority = text.substr(0, text.find('/'));
  std::string_view path = text.substr(authority.size());
  server_url url;
  url.secure = secure;
  std::string_view port;
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    if (end == std::string_view::npos) return tl::unexpected(whole + ": ']' is missing");
    url.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else {
    url.host = authority.substr(0, authority.find(':'));
    port = authority.substr(url.host.size());
  }
  if (url.host.empty()) return tl::unexpected(whole + ": there is no host in the URL");
  if (!port.empty() && (port[0] != ':' || !is_port(port.substr(1))))
    return tl::unexpected(whole + ": the port is not a number");
  url.port = port.empty() ? (secure ? "443" : "80") : port.substr(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  url.path = path;
  if (!path.ends_with(endpoint)) url.path += endpoint;
  return url;
}

tl::expected<std::vector<server_url>, std::string> parse_server_urls(std::string_view text, const std::string& key,
                                                                     const std::string& ca_file) {
  std::vector<server_url> urls;
  while (true) {
    const auto comma = text.find(',');
    auto url = parse_server_url(text.substr(0, comma));
    if (!url) return tl::unexpected(std::move(url.error()));
    url->key = key;
    url->ca_file = ca_file;
    urls.push_back(std::move(*url));
    if (comma == std::string_view::npos) return urls;
    text.remove_prefix(comma + 1);
  }
}

} // namespace parley::client
