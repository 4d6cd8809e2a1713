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
  const char* result; ///< value of the label `result`
  std::uint64_t inference::engine_capacity::*value;
};

inline constexpr auto voice_cache_help = "Requested reference voices, by whether they were cached.";
inline constexpr auto prompt_cache_help = "Prompts of audio and video sessions, by whether they were cached.";

inline constexpr engine_counter engine_counters[] = {
    {"parley_voice_cache_total", voice_cache_help, "hit", &inference::engine_capacity::voice_hits},
    {"parley_voice_cache_total", voice_cache_help, "miss", &inference::engine_capacity::voice_misses},
    {"parley_prompt_cache_total", prompt_cache_help, "hit", &inference::engine_capacity::prompt_hits},
    {"parley_prompt_cache_total", prompt_cache_help, "miss", &inference::engine_capacity::prompt_misses}};

static_assert(sizeof(inference::engine_capacity) == 16 + sizeof(std::uint64_t) * std::size(engine_counters),
              "each counter needs a row; unit_codec must carry any other member");

} // namespace parley::actors
