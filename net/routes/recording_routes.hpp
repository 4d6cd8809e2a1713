#pragma once

#include "actors/gateway_api.hpp"
#include "net/routes/router.hpp"

namespace parley::net {

/// GET /sessions, and a recording's files below it (docs/protocol.md 13): for the session's own key, or for the
/// server's own machine if no keys are set. `core` must outlive the table.
void add_recording_routes(router& table, actors::gateway_api& core);

} // namespace parley::net
