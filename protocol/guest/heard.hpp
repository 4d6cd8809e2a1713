#pragma once

#include "protocol/events.hpp"
#include "protocol/media/pcm.hpp"

#include <optional>
#include <span>
#include <string_view>

// What guests read of a session's events. A delta has what its kind says, as on the wire.
namespace parley::protocol::guest {

inline std::string_view words_in(const output_delta& of) {
  return of.kind == output_kind::text ? std::string_view(of.text) : std::string_view();
}

/// 24 kHz, in [-1, 1]; null = none.
inline pcm sound_in(const output_delta& of) {
  const bool some = of.kind == output_kind::audio && of.audio && !of.audio->empty();
  return some ? clamped(of.audio) : nullptr;
}

inline std::span<const float> samples_in(const pcm& sound) {
  return sound ? std::span(*sound) : std::span<const float>();
}

/// Whether it is the last delta of a step, so the unit is answered (docs/protocol.md 6.2).
inline bool answers_unit(const output_delta& of) {
  return of.measured.wall_clock_ms.has_value();
}

/// What the session's context holds by now, if the event says so.
inline std::optional<int> context_in(const server_event& event) {
  if (const auto* const delta = std::get_if<output_delta>(&event)) return delta->measured.kv_cache_length;
  if (const auto* const created = std::get_if<session_created>(&event)) return created->measured.kv_cache_length;
  if (const auto* const done = std::get_if<response_done>(&event)) return done->measured.kv_cache_length;
  return std::nullopt;
}

} // namespace parley::protocol::guest
