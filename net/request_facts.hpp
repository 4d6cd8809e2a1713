#pragma once

#include "net/beast.hpp"
#include "net/gate.hpp"
#include "net/http_message.hpp"
#include "net/peer.hpp"

#include <optional>
#include <string>
#include <string_view>

// What is read off an HTTP request before it is answered.
namespace parley::net {

using request = http::request<http::string_body>;

/// What is wrong with an upgrade that would else be accepted (RFC 6455 4.2.1). `early_bytes`: some came behind it already.
std::optional<http_reply> upgrade_fault(const request& sent, bool early_bytes);

/// All headers of one name, with commas between.
std::string join(const request& sent, http::field name);

/// Points into the request.
std::string_view header(const request& sent, http::field name);

/// Points into the request and its joined subprotocols.
visitor visitor_of(const request& sent, std::string_view subprotocols, const peer& who);

bool changes_something(http::verb method);

} // namespace parley::net
