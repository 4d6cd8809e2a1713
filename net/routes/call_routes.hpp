#pragma once

#include "net/call_acceptor.hpp"
#include "net/routes/router.hpp"

#include <functional>

// What is done with calls besides beginning them, which connections do themselves (http_session); and what there isn't.
namespace parley::net {

/// `all`: the calls of the server, asked for with each request; empty or null = there is no WebRTC.
void add_call_routes(router& table, std::function<call_acceptor*()> all);

} // namespace parley::net
