#pragma once

#include "net/access/key_usage.hpp"
#include "net/routes/router.hpp"

#include <string>
#include <vector>

// What keys have used of their quotas.
namespace parley::net {

/// GET /v1/usage. `usage` must outlive the table.
void add_usage_routes(router& table, const key_usage& usage);

/// In Prometheus's text format, of the quotas that have a limit.
std::string quota_metrics(const std::vector<key_usage::holder>& keys);

} // namespace parley::net
