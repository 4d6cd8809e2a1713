#pragma once

#include "net/host_name.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace parley::net {

/// The API key of a request: `Authorization: Bearer K`, else a subprotocol `map-api-key.K` or
/// `openai-insecure-api-key.K` (browsers cannot set headers), else `?api_key=K` (docs/protocol.md 1, subprotocols). The
/// arguments are the headers as received, empty if absent, and the query without '?'. None = the request has no key.
std::optional<std::string> offered_key(std::string_view authorization, std::string_view subprotocols,
                                       std::string_view query);

/// Whether `host`, under which a page reached the server, also served that page, whose origin is `origin`. The port
/// does not count: another server on this machine may have served the page. Both are headers. `names` are the names of
/// this server; null = any, which is safe only if a key is needed, because a name can be pointed here after its page
/// was loaded (DNS rebinding).
bool is_own_page(std::string_view origin, std::string_view host, const server_names* names);

/// Whether a page of `origin` may use the server. `allowed` is the setting `auth.allowed_origins`; `host` and `names`
/// as above. An empty origin means that the client is not a page.
bool origin_allowed(std::string_view allowed, std::string_view origin, std::string_view host,
                    const server_names* names);

} // namespace parley::net
