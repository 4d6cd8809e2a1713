#pragma once

#include <nlohmann/json.hpp>

namespace parley::protocol::conformance {

/// The part of openai_events.json about a dialect: realtime, beta or live.
const nlohmann::json& tables(const char* dialect);

} // namespace parley::protocol::conformance
