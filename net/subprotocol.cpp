#include "net/subprotocol.hpp"

namespace parley::net {
namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The part after the prefix of a key; nothing if it is not a key.
std::optional<std::string_view> key_of(std::string_view protocol) {
  for (const std::string_view prefix : {"map-api-key.", "openai-insecure-api-key."})
    if (protocol.starts_with(prefix)) return protocol.substr(prefix.size());
  return std::nullopt;
}

/// Calls `look` with each protocol in the list until it returns something.
template<class Look>
std::optional<std::string> first_of(std::string_view offered, Look look) {
  while (!offered.empty()) {
    const auto end = offered.find(',');
    const std::string_view protocol = trim(offered.substr(0, end));
    if (!protocol.empty())
      if (std::optional<std::string> found = look(protocol)) return found;
    offered.remove_prefix(end == std::string_view::npos ? offered.size() : end + 1);
  }
  return std::nullopt;
}

} // namespace

std::optional<std::string> choose_subprotocol(std::string_view offered) {
  return first_of(offered, [](std::string_view protocol) -> std::optional<std::string> {
    if (key_of(protocol)) return std::nullopt;
    return std::string(protocol);
  });
}

std::optional<std::string> key_in_subprotocols(std::string_view offered) {
  return first_of(offered, [](std::string_view protocol) -> std::optional<std::string> {
    if (const auto key = key_of(protocol)) return std::string(*key);
    return std::nullopt;
  });
}

} // namespace parley::net
