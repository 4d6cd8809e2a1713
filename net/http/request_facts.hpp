#pragma once

#include "net/access/access_control.hpp"
#include "net/access/peer.hpp"
#include "net/beast.hpp"
#include "net/routes/http_message.hpp"

#include <optional>
#include <string>
#include <string_view>

// Facts read from an HTTP request before it is answered.
namespace parley::net {

using request = http::request<http::string_body>;

/// What is wrong with an upgrade that would otherwise be accepted (RFC 6455 4.2.1). `early_bytes`: the client has
/// already sent bytes after it.
std::optional<http_reply> upgrade_fault(const request& sent, bool early_bytes);

/// What is wrong with a head that Beast accepts: a body whose end is not certain, because others along the way may see
/// it elsewhere (RFC 9112 6), or an expectation that is not met here.
std::optional<http_reply> head_fault(const request& sent);

/// Whether the client waits to be asked for the body (RFC 9110 10.1.1).
bool waits_for_continue(const request& sent);

/// All headers of one name, joined by commas.
std::string join(const request& sent, http::field name);
std::string join(const request& sent, std::string_view name);

/// Points into the request.
std::string_view header(const request& sent, http::field name);
std::string_view header(const request& sent, std::string_view name);

/// Points into the request and its joined subprotocols.
credentials credentials_of(const request& sent, std::string_view subprotocols, const peer& who);

bool changes_something(http::verb method);

/// Whether pages of other hosts, where `auth.allowed_origins` lets them open sessions, may also read the answers at this
/// path: those of OpenAI's API, and whether the server is there. What operators ask for is not for pages.
bool is_for_pages(std::string_view path);

} // namespace parley::net
