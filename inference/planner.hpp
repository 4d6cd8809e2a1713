#pragma once

#include "inference/unit.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parley::inference {

/// What a session waits for. Its thinking and its speaking half each have one.
enum class stage {
  idle,
  voice,       ///< its reference voice, which is prepared elsewhere
  same_prompt, ///< the prompt that another session is being given
  look,        ///< its pictures, which are sliced elsewhere
  hear,        ///< one second of its stream to be turned into rows
  see,         ///< pieces of pictures to be turned into rows
  clips,       ///< whole sounds of its prompt to be turned into rows
  prefill,     ///< rows to be put into its cache
  decode,      ///< one token to be fed
  speak,       ///< one speech token to be chosen
  sound,       ///< a window of speech tokens to be made sound
};

/// A session that is ready for a stage. A chat answer may stand here twice: thinking on, and speaking.
struct ready_session {
  session_id session = 0;
  stage at = stage::idle;
  std::chrono::steady_clock::time_point deadline; ///< arrival + 1 s
  std::int64_t rows = 0;                          ///< of a prefill, or pieces to be seen
  bool divisible = false;                         ///< the prefill may be cut: a prompt, not a unit
};

/// How much of each stage one pass takes on, so that no stage keeps the others waiting for long.
struct pass_limits {
  int sounds = 64;                      ///< streams heard in one call
  std::int64_t pieces = 32;             ///< of pictures seen in one call: the first to wait sees first
  std::int64_t prompt_rows = 256;       ///< rows of prompts in one call
  std::int64_t prompt_rows_beside = 64; ///< the same in a pass that somebody waits for who listens or speaks
  int windows = 16;                     ///< of speech tokens made sound in one call: the first to wait hear first
};

/// One pass of the engine: each stage is one batched call.
struct pass_plan {
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

/// Earliest deadline first; equal deadlines by session. Units are never cut and never wait for prompts. Pure.
pass_plan plan_pass(std::span<const ready_session> ready, const pass_limits& limits);

} // namespace parley::inference
