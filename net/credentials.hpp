#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace parley::net {

/// The API key of a request: `Authorization: Bearer K`, else a subprotocol `map-api-key.K` or
/// `openai-insecure-api-key.K` (browsers cannot set headers), else `?api_key=K` (PROTOCOL.md 1, subprotocols). The
/// arguments are the headers as they came, empty if absent, and the query without '?'. None = it brought none.
std::optional<std::string> offered_key(std::string_view authorization, std::string_view subprotocols,
                                       std::string_view query);

/// Whether a page of `origin` may use the server, which it reached under the name `host`. `allowed` is the setting
/// `auth.allowed_origins`. An empty origin is no page's.
bool origin_allowed(std::string_view allowed, std::string_view origin, std::string_view host);

} // namespace parley::net
