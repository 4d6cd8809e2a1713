#pragma once

#include "protocol/events.hpp"

#include <optional>
#include <string_view>

namespace parley::tests {

/// The event that such a frame stands for, as far as guests heed it; none = they do not. Members that the frame lacks, or has of
/// another type, keep their defaults.
std::optional<protocol::server_event> event_in(std::string_view frame);

} // namespace parley::tests
