#pragma once

#include "inference/engine.hpp"

#include <cstdint>
#include <iterator>

namespace parley::actors {

/// What an engine counts since it began, and its series in GET /metrics. A new counter is a member of `engine_capacity`, a
/// row here, and its value in the engine.
struct engine_counter {
  const char* metric;
  const char* help;
  const char* result; ///< the label of that name
  std::uint64_t inference::engine_capacity::*value;
};

inline constexpr auto voice_cache_help = "Reference voices asked for, by whether they were at hand.";
inline constexpr auto prompt_cache_help =
    "Prompts of audio and video sessions, by whether another session had left their rows.";

inline constexpr engine_counter engine_counters[] = {
    {"parley_voice_cache_total", voice_cache_help, "hit", &inference::engine_capacity::voice_hits},
    {"parley_voice_cache_total", voice_cache_help, "miss", &inference::engine_capacity::voice_misses},
    {"parley_prompt_cache_total", prompt_cache_help, "hit", &inference::engine_capacity::prompt_hits},
    {"parley_prompt_cache_total", prompt_cache_help, "miss", &inference::engine_capacity::prompt_misses}};

static_assert(sizeof(inference::engine_capacity) == 16 + sizeof(std::uint64_t) * std::size(engine_counters),
              "every counter has a row, and a member that is none is carried by unit_codec");

} // namespace parley::actors
