#include "net/subprotocol.hpp"

namespace parley::net {
namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_key(std::string_view protocol) {
  return protocol.starts_with("map-api-key.") || protocol.starts_with("openai-insecure-api-key.");
}

} // namespace

std::optional<std::string> choose_subprotocol(std::string_view offered) {
  while (!offered.empty()) {
    const auto end = offered.find(',');
    const std::string_view protocol = trim(offered.substr(0, end));
    if (!protocol.empty() && !is_key(protocol)) return std::string(protocol);
    offered.remove_prefix(end == std::string_view::npos ? offered.size() : end + 1);
  }
  return std::nullopt;
}

} // namespace parley::net
