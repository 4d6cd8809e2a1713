#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace parley::net {

/// The subprotocol to echo from a `Sec-WebSocket-Protocol` list: the first one that is not an API key in disguise
/// (docs/protocol.md 1). If a browser offered some and gets none, it fails the connection.
std::optional<std::string> choose_subprotocol(std::string_view offered);

/// The first API key in the list: `map-api-key.K` or `openai-insecure-api-key.K`.
std::optional<std::string> key_in_subprotocols(std::string_view offered);

} // namespace parley::net
