#pragma once

#include "net/routes/permission_reply.hpp"
#include "net/routes/router.hpp"

#include <utility>

// Handlers that check permissions first.
namespace parley::net {

/// For callers who may watch the server. The answers grow with it, so there must be room for one.
template<class Handler>
router::handler watched(Handler run) {
  return [run = std::move(run)](const http_request& request, const path_segments& segments, responder respond) {
    if (!request.may.may_watch) return respond(permission_denied(request));
    if (!request.has_room) return respond(no_room_reply());
    run(request, segments, std::move(respond));
  };
}

/// For callers who may operate the server.
template<class Handler>
router::handler administered(Handler run) {
  return [run = std::move(run)](const http_request& request, const path_segments& segments, responder respond) {
    if (!request.may.who) return respond(permission_denied(request));
    if (!request.may.who->sees_all) return respond(error_reply(403, "forbidden", "this asks for an admin's API key"));
    run(request, segments, std::move(respond));
  };
}

} // namespace parley::net
