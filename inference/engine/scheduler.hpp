#pragma once

#include "inference/unit.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parley::inference {

/// What a session waits for. Its thinker and its talker each have a stage.
enum class stage {
  idle,
  voice,       ///< its reference voice, which is prepared elsewhere
  same_prompt, ///< the prompt that another session is prefilling
  look,        ///< its pictures, which are sliced elsewhere
  hear,        ///< a second of its stream, to become rows
  see,         ///< pieces of pictures, to become rows
  clips,       ///< whole sounds of its prompt, to become rows
  prefill,     ///< rows to be prefilled into its cache
  decode,      ///< one token to be fed
  speak,       ///< one speech token to be chosen
  sound,       ///< a window of speech tokens, to become sound
};

/// A session that is ready for a stage. A chat answer may appear twice: it thinks ahead and speaks.
struct ready_session {
  session_id session = 0;
  stage at = stage::idle;
  std::chrono::steady_clock::time_point deadline; ///< arrival + 1 s
  std::int64_t rows = 0;                          ///< of a prefill, or pieces to be encoded
  bool divisible = false;                         ///< the prefill may be divided: it is a prompt, not a unit
};

/// How much of each stage is done in one pass, so that no stage makes the others wait for long.
struct pass_limits {
  int sounds = 64;                      ///< streams encoded in one call
  std::int64_t pieces = 32;             ///< of pictures encoded in one call, in the order of waiting
  std::int64_t prompt_rows = 256;       ///< rows of prompts in one call
  std::int64_t prompt_rows_beside = 64; ///< the same in a pass with units that somebody waits for
  int windows = 16;                     ///< of speech tokens turned into sound in one call, in the order of waiting
};

/// One pass of the engine: each stage is one batched call.
struct schedule {
  struct piece {
    session_id session;
    std::int64_t rows;
  };
  std::vector<session_id> hear;
  std::vector<piece> see;          ///< `rows` are pieces
  std::optional<session_id> clips; ///< one at a time: a prompt may hold a minute of sound
  std::vector<piece> prefill;
  std::vector<session_id> decode;
  std::vector<session_id> speak;
  std::vector<session_id> sound;
};

/// Earliest deadline first; equal deadlines by session. Units are never divided and never wait for prompts. Pure.
schedule schedule_pass(std::span<const ready_session> ready, const pass_limits& limits);

} // namespace parley::inference
