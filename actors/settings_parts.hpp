#pragma once

#include "actors/queue_line.hpp"
#include "config/settings.hpp"
#include "protocol/limits.hpp"

#include <chrono>

// What the pure parts take of the settings.
namespace parley::actors {

// Seconds of the settings become milliseconds. Silence and rejoin: of section `nodes`.
queue_settings queue_from(const config::settings& settings);
waiting_limits waiting_from(const config::settings& settings);
protocol::session_limits limits_from(const config::settings& settings);
std::chrono::milliseconds silence_from(const config::settings& settings);
std::chrono::milliseconds rejoin_from(const config::settings& settings);

} // namespace parley::actors
