#pragma once

#include "actors/queue/admission_queue.hpp"
#include "config/settings.hpp"
#include "protocol/limits.hpp"

#include <chrono>

// Converts the settings to what the pure classes need.
namespace parley::actors {

// Converts seconds to milliseconds. Silence and rejoin are of section `nodes`.
queue_settings queue_from(const config::settings& settings);
waiting_limits waiting_from(const config::settings& settings);
protocol::session_limits limits_from(const config::settings& settings);
std::chrono::milliseconds silence_from(const config::settings& settings);
std::chrono::milliseconds rejoin_from(const config::settings& settings);

} // namespace parley::actors
