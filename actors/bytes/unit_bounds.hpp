#pragma once

#include "actors/capacity/worker_capacity.hpp"
#include "conversation/engine.hpp"
#include "inference/engine.hpp"

#include <cstddef>
#include <cstdint>

// What engines, and the gateways that use them, may say to each other: bounds far beyond what any of them does, within which
// no sum overflows and nothing grows without end. `unit_codec` refuses what is outside. Pure.
namespace parley::actors {

inline constexpr std::int64_t most_tokens = 1 << 24;                       ///< of a step, a turn or a context
inline constexpr std::int64_t most_token_ids = 1 << 20;                    ///< of text or speech
inline constexpr std::size_t most_samples = std::size_t{24'000} * 60 * 60; ///< of an answer: an hour
inline constexpr std::size_t most_text_bytes = std::size_t{4} << 20;       ///< of an answer
inline constexpr std::size_t most_words_bytes = 4096;                      ///< of a reason
inline constexpr std::size_t most_calls = 1024;                            ///< of an answer
inline constexpr std::size_t most_likeliest = 64;                          ///< tokens in the place of one
inline constexpr std::size_t most_frames = 64;                             ///< pictures of a unit
inline constexpr int most_slots = 1 << 16;
inline constexpr int most_pages = 1 << 30;

/// Whether an engine can have said this: counts, token ids and times within the bounds, text well-formed, samples numbers.
bool plausible(const conversation::event& event);

/// Whether a gateway can have ordered this.
bool plausible(const conversation::command& order);

bool plausible(const inference::engine_info& info);
bool plausible(const worker_capacity& load);

} // namespace parley::actors
