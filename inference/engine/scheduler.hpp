#pragma once

#include "inference/unit.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parley::inference {

/// What a session needs next. Its thinker and its talker each have a stage.
enum class stage {
  idle,
  voice,       ///< its reference voice, prepared elsewhere
  same_prompt, ///< its prompt, which another session is prefilling
  look,        ///< its pictures, sliced elsewhere
  hear,        ///< encode a second of its stream into rows
  see,         ///< encode pieces of pictures into rows
  clips,       ///< encode whole sounds of its prompt into rows
  prefill,     ///< prefill rows into its cache
  decode,      ///< feed one token
  speak,       ///< choose one speech token
  sound,       ///< turn a window of speech tokens into sound
};

/// A session that is ready for a stage. A chat answer may appear twice, since it is generated ahead while it is spoken.
struct ready_session {
  session_id session = 0;
  stage at = stage::idle;
  std::chrono::steady_clock::time_point deadline; ///< arrival + 1 s
  std::int64_t rows = 0;                          ///< rows to prefill, or pieces to encode
  bool divisible = false;                         ///< its prefill may be divided: it is a prompt, not a unit
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
  std::vector<piece> prefill;
  std::vector<session_id> decode;
  std::vector<session_id> speak;
  std::vector<session_id> sound;

  bool empty() const {
    return hear.empty() && see.empty() && !clips && prefill.empty() && decode.empty() && speak.empty() && sound.empty();
  }
};

/// Earliest deadline first; equal deadlines by session. Units are never divided and never wait for prompts. Pure.
/// `windows_from`: until then windows wait for company, as the limits say.
schedule schedule_pass(std::span<const ready_session> ready, const pass_limits& limits,
                       std::chrono::steady_clock::time_point now = std::chrono::steady_clock::time_point::max(),
                       std::chrono::steady_clock::time_point windows_from =
                           std::chrono::steady_clock::time_point::max());

} // namespace parley::inference
