#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace parley::net {

/// The subprotocol to echo from a `Sec-WebSocket-Protocol` list: the first that is not an API key in disguise
/// (docs/protocol.md 1). Browsers fail a connection that offered some and got none.
std::optional<std::string> choose_subprotocol(std::string_view offered);

/// The API key among them, `map-api-key.K` or `openai-insecure-api-key.K`: the first one.
std::optional<std::string> key_in_subprotocols(std::string_view offered);

} // namespace parley::net
