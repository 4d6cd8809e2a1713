#pragma once

#include "protocol/events.hpp"

#include <string>

namespace parley::protocol {

/// The frame that a client of the current dialect would have sent instead of the event, for recordings. An init tells of the
/// options that guests set, and of no others.
std::string written(const client_event& event);

} // namespace parley::protocol
