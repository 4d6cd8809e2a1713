#pragma once

#include "net/http/permission_reply.hpp"
#include "net/http/router.hpp"

#include <utility>

// Handlers that ask first who wants to know.
namespace parley::net {

/// For who may watch the server.
template<class Handler>
router::handler watched(Handler run) {
  return [run = std::move(run)](const http_request& request, const path_segments& segments, responder respond) {
    if (!request.may.may_watch) return respond(permission_denied(request));
    run(request, segments, std::move(respond));
  };
}

/// For who may run the server.
template<class Handler>
router::handler administered(Handler run) {
  return [run = std::move(run)](const http_request& request, const path_segments& segments, responder respond) {
    if (!request.may.who) return respond(permission_denied(request));
    if (!request.may.who->sees_all) return respond(error_reply(403, "forbidden", "this asks for an admin's API key"));
    run(request, segments, std::move(respond));
  };
}

} // namespace parley::net
