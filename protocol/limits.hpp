#pragma once

#include "conversation/unit_cost.hpp"
#include "protocol/events.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

// The limits of the wire: fixed ones as constants, settings as a struct that the server fills in (docs/protocol.md
// sections 3, 6, 8).
namespace parley::protocol {

inline constexpr std::size_t unit_samples = 16'000;           ///< one step of a duplex session: a second
inline constexpr std::size_t max_waiting_frames = 4;          ///< frames of appends that have not completed a unit yet
inline constexpr std::size_t max_context_messages = 32;       ///< of one append to a duplex session …
inline constexpr std::size_t max_context_bytes = 8u << 10;    ///< … and their text
inline constexpr std::size_t max_waiting_context = 16u << 10; ///< text that waits for the next unit
inline constexpr std::size_t max_pending_turns = 4;           ///< chat appends waiting behind the running one …
inline constexpr std::size_t max_pending_bytes = 128u << 20;  ///< … and their frames, if there are several
inline constexpr int max_inference_failures = 3;              ///< consecutive failures that end a session
inline constexpr int max_failed_inits = 3;                    ///< failed inits that end a session
inline constexpr std::size_t max_flood_errors = 50; ///< client errors within `flood_span`; one more closes with 1008
inline constexpr std::chrono::seconds flood_span{10};
/// How many events a client may have received that a process that took its session up does not know of
/// (docs/protocol.md 14).
inline constexpr std::uint64_t max_lost_events = 100;
inline constexpr std::size_t max_session_id_bytes = 64; ///< for `?session_id=`
inline constexpr double go_away_fill = 0.9; ///< share of the context at which `go_away{context_full}` is sent

/// The limits of a session: settings of the server (docs/operations.md).
struct session_limits {
  using milliseconds = std::chrono::milliseconds;

  milliseconds audio = std::chrono::seconds(600); ///< total duration, from the accepted upgrade
  milliseconds video = std::chrono::seconds(300);
  milliseconds chat = std::chrono::seconds(1800);
  milliseconds chat_idle = std::chrono::seconds(60);
  milliseconds chat_turn = std::chrono::seconds(120);
  milliseconds init = std::chrono::seconds(30); ///< since `session.queue_done`
  milliseconds failover =
      std::chrono::seconds(30); ///< time without a worker; 0 = losing the worker ends active sessions at once
  milliseconds drain = std::chrono::seconds(30);
  milliseconds resume = std::chrono::seconds(30); ///< how long a session outlives its connection, if requested; 0 =
                                                  ///< never
  std::size_t backlog_units = 2;                  ///< waiting units besides the running step
  std::size_t failover_units = 60;                ///< the same while the session has no worker
  std::size_t min_legacy_samples = 4000;          ///< for input_audio_buffer.append (docs/protocol.md 3.4)
  int context_tokens = 8192;
  conversation::unit_cost unit; ///< as reported by the engine
  window_mode window = window_mode::off;
  bool allow_client_window = true;   ///< whether `config.sliding_window_mode` is honoured (docs/protocol.md 6.10)
  bool duplex_response_done = false; ///< docs/protocol.md 12 (f)

  /// False in a session that began in a build without functions in audio and video (docs/protocol.md 17), wishes (3.1) and
  /// `config.generation`: it goes on as it began, and the rest is not used.
  bool knows_functions = true;
  std::size_t delegations = 4;                        ///< calls under way in audio and video; 0 = no functions there
  milliseconds delegation = std::chrono::seconds(30); ///< until the client has answered one
  bool transcribes = true;                            ///< whether `config.transcribe_input` is honoured
};

/// What the workers' builds and checkpoints can do.
struct capabilities {
  bool hears = true;
  bool sees = false;
  bool speaks = false;
};

/// A session's total duration in a mode.
constexpr session_limits::milliseconds duration_limit(const session_limits& limits, mode kind) {
  switch (kind) {
  case mode::chat: return limits.chat;
  case mode::audio: return limits.audio;
  case mode::video: return limits.video;
  }
  return limits.video;
}

} // namespace parley::protocol
