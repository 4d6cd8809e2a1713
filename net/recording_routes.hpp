#pragma once

#include "actors/front_door.hpp"
#include "net/router.hpp"

namespace parley::net {

/// GET /sessions, and a recording's files below it (PROTOCOL.md 13): for the session's own key, or the server's own
/// machine when no keys are set. `door` outlives the table.
void add_recording_routes(router& table, actors::front_door& door);

} // namespace parley::net
