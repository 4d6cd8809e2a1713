#pragma once

#include "inference/engine/background_share.hpp"
#include "inference/vocabulary.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parley::inference {

/// A session that is ready for a stage. A chat answer may appear twice, since it is generated ahead while it is spoken.
struct ready_session {
  session_id session = 0;
  stage at = stage::idle;
  std::chrono::steady_clock::time_point deadline; ///< its second's begin + 1 s
  std::int64_t rows = 0;                          ///< rows to prefill, pieces to encode, or layers to move
  bool divisible = false;                         ///< its prefill may be divided: it is a prompt or text, not a unit
  bool background = false;                        ///< no unit: a prompt, a chat answer or a replay
  int steps_left = 1;                             ///< of a unit: passes that it may still take
  bool moved = false; ///< a replay, or the prompt before it: somebody waits in the middle of a conversation
};

/// How much of each stage may run in one pass, so that no stage delays the others for long.
struct pass_limits {
  int sounds = 64;                      ///< streams encoded in one call
  std::int64_t pieces = 32;             ///< pieces of pictures encoded in one call, in order of waiting
  std::int64_t prompt_rows = 256;       ///< prompt rows in one call
  std::int64_t prompt_rows_beside = 64; ///< the same if units, which somebody is waiting for, are in the pass
  int speech_steps = 1;                 ///< speech tokens that a session chooses in one pass: as many calls
  int windows = 16;                     ///< windows of speech tokens turned into sound in one call, in order of waiting
  /// How long after a unit's arrival its sound may wait to be encoded in one call with that of others, and its windows
  /// to be turned into sound, while there is other work. For an accelerator, where a call for one costs almost as much
  /// as a call for many.
  std::chrono::milliseconds gather_sounds{0}, gather_windows{0};
  /// Between calls for windows, other work gets this many times what the last one took, so that few windows at a time do
  /// not take all of it; none waits longer than `gather_windows` for that.
  int window_rest = 3;
};

/// The limits for an accelerator: more in one call, and some patience to get it together.
pass_limits accelerator_limits();

/// One pass of the engine: each stage is one batched call.
struct schedule {
  struct piece {
    session_id session;
    std::int64_t rows;
  };
  std::vector<session_id> hear;
  std::vector<piece> see;          ///< `rows` are pieces
  std::optional<session_id> clips; ///< one at a time, because a prompt may contain a minute of sound
  std::vector<piece> slide;        ///< `rows` are layers
  std::vector<piece> prefill;
  std::vector<session_id> decode;
  std::vector<session_id> speak;
  std::vector<session_id> sound;

  std::vector<planned_work> paid;    ///< those parts of it that take of the share of time (background_share.hpp)
  std::vector<session_id> owners;    ///< the sessions that were ready for such work
  due_units units = due_units::none; ///< those that take part

  bool empty() const {
    return hear.empty() && see.empty() && !clips && slide.empty() && prefill.empty() && decode.empty() &&
           speak.empty() && sound.empty();
  }
};

/// How long before its second begins a unit counts as due: what a network moves the sound of a microphone by.
inline constexpr std::chrono::milliseconds unit_jitter{250};

/// Earliest deadline first; equal deadlines by session. Units are never divided and never wait for prompts; those whose
/// second has not begun wait until nobody else has work. `share`: the time that is left for everything else, in order of
/// who had least of it; null = no such limit. `windows_from`: until then windows wait for company, as the limits say.
/// Pure.
schedule
schedule_pass(std::span<const ready_session> ready, const pass_limits& limits,
              std::chrono::steady_clock::time_point now = std::chrono::steady_clock::time_point::max(),
              const background_share* share = nullptr,
              std::chrono::steady_clock::time_point windows_from = std::chrono::steady_clock::time_point::max());

} // namespace parley::inference
