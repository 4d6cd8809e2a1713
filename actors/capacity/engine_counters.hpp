#pragma once

#include "inference/engine.hpp"

#include <cstdint>
#include <iterator>

namespace parley::actors {

/// A counter of an engine, from its start on, and its series in GET /metrics. A new counter needs a member of
/// `engine_capacity`, a row here, and its value in the engine.
struct engine_counter {
  const char* metric;
  const char* help;
  const char* label;
  const char* label_value;
  std::uint64_t inference::engine_capacity::*value;
  double unit = 1; ///< what one is in the series
};

inline constexpr auto voice_cache_help = "Requested reference voices, by whether they were cached.";
inline constexpr auto prompt_cache_help = "Prompts of audio and video sessions, by whether they were cached.";

inline constexpr auto work_help = "Time of the engine's thread, by what it was for: seconds of conversations, their "
                                  "windows, sessions that open, chat "
                                  "answers, sessions that are repeated after a loss.";
inline constexpr auto core_wait_help = "Time in which the engine's thread was ready and had no core.";
inline constexpr auto late_help =
    "Seconds of conversations that were answered late, by what took most of their time: they themselves, those of "
    "others, everything else, waiting for a core.";

inline constexpr engine_counter engine_counters[] = {
    {"parley_voice_cache_total", voice_cache_help, "result", "hit", &inference::engine_capacity::voice_hits},
    {"parley_voice_cache_total", voice_cache_help, "result", "miss", &inference::engine_capacity::voice_misses},
    {"parley_prompt_cache_total", prompt_cache_help, "result", "hit", &inference::engine_capacity::prompt_hits},
    {"parley_prompt_cache_total", prompt_cache_help, "result", "miss", &inference::engine_capacity::prompt_misses},
    {"parley_engine_work_seconds_total", work_help, "work", "unit", &inference::engine_capacity::unit_us, 1e-6},
    {"parley_engine_work_seconds_total", work_help, "work", "window", &inference::engine_capacity::window_us, 1e-6},
    {"parley_engine_work_seconds_total", work_help, "work", "prompt", &inference::engine_capacity::prompt_us, 1e-6},
    {"parley_engine_work_seconds_total", work_help, "work", "chat", &inference::engine_capacity::chat_us, 1e-6},
    {"parley_engine_work_seconds_total", work_help, "work", "replay", &inference::engine_capacity::replay_us, 1e-6},
    {"parley_engine_core_wait_seconds_total", core_wait_help, "device", "cpu", &inference::engine_capacity::waited_us,
     1e-6},
    {"parley_late_units_total", late_help, "cause", "itself", &inference::engine_capacity::late_itself},
    {"parley_late_units_total", late_help, "cause", "units", &inference::engine_capacity::late_units},
    {"parley_late_units_total", late_help, "cause", "background", &inference::engine_capacity::late_background},
    {"parley_late_units_total", late_help, "cause", "core", &inference::engine_capacity::late_core}};

static_assert(sizeof(inference::engine_capacity) == 16 + sizeof(std::uint64_t) * std::size(engine_counters),
              "each counter needs a row; unit_codec must carry any other member");

} // namespace parley::actors
