#pragma once

#include "actors/gateway_api.hpp"
#include "net/http/router.hpp"

namespace parley::net {

/// What the pages of the official demo ask for and other clients do not (docs/demo_endpoints.md): GET /workers and
/// GET /api/queue are served, the rest is 410 with the place of what does the same here. `core` outlives the table.
void add_demo_routes(router& table, actors::gateway_api& core);

} // namespace parley::net
