#pragma once

#include "actors/gateway_api.hpp"
#include "net/routes/router.hpp"

namespace parley::net {

/// Routes that only the pages of the official demo request (docs/demo_endpoints.md): serves GET /workers and GET
/// /api/queue; the others get 410, naming the route that replaces them here. `core` must outlive the table.
void add_demo_routes(router& table, actors::gateway_api& core);

} // namespace parley::net
