#pragma once

#include <cstdint>

namespace parley::actors {

/// Assigned by the queue manager; never reused.
using worker_key = std::uint64_t;
using ticket_key = std::uint64_t;

} // namespace parley::actors
