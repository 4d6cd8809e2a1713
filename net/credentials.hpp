#pragma once

#include "net/host_name.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace parley::net {

/// The API key of a request: `Authorization: Bearer K`, else a subprotocol `map-api-key.K` or
/// `openai-insecure-api-key.K` (browsers cannot set headers), else `?api_key=K` (PROTOCOL.md 1, subprotocols). The
/// arguments are the headers as they came, empty if absent, and the query without '?'. None = it brought none.
std::optional<std::string> offered_key(std::string_view authorization, std::string_view subprotocols,
                                       std::string_view query);

/// Whether a page of `origin`, which reached the server as `host`, came from this host; its port does not count, as it
/// may come from another server there. Both are headers. `names`: those that count as this server's, null = any, which
/// is safe only where a key is asked: a name can be made to lead here after its page was loaded (DNS rebinding).
bool is_own_page(std::string_view origin, std::string_view host, const server_names* names);

/// Whether a page of `origin` may use the server. `allowed` is the setting `auth.allowed_origins`, `host` and `names` as
/// above. An empty origin is no page's.
bool origin_allowed(std::string_view allowed, std::string_view origin, std::string_view host,
                    const server_names* names);

} // namespace parley::net
