#pragma once

#include "inference/talker.hpp"
#include "inference/thinker.hpp"

#include <cstddef>

namespace parley::inference {

/// The cost of a second of many duplex sessions: a fixed part, and a part per session.
struct step_cost {
  double fixed_seconds = 0;
  double session_seconds = 0;
};

/// Runs a unit's stages for one and for four artificial sessions: sound, prefill, a few tokens; with a talker, also the
/// speech tokens and the sound of a second, in this voice. Without a talker, both pointers are null. Takes seconds.
step_cost measure_step(const thinker& model, const talker* speaker, const std::shared_ptr<const speech::voice>& voice);

/// How many sessions an engine can offer, and what limits them.
struct capacity {
  int slots = 0;     ///< to offer at first
  int by_memory = 0; ///< number that fits into half of the free memory
  int by_speed = 0;  ///< number whose steps together take at most half a second
  int most = 0;      ///< maximum number of slots ever, if speed allows
};

/// Number of sessions that fit into half of `free_bytes` and whose steps together take at most half a second, between 1
/// and 64. Pure.
capacity find_capacity(const step_cost& cost, std::size_t free_bytes, std::size_t session_bytes);

/// Number of sessions whose steps together take at most half a second, between 1 and `most`. Pure.
int slots_in_time(const step_cost& cost, int most);

/// The memory that a session may come to need, in bytes.
struct session_memory {
  std::size_t keys_values = 0;   ///< of the language model, over the whole context
  std::size_t encoder = 0;       ///< keys and values of the audio encoder, until its cache is emptied
  std::size_t speech_tokens = 0; ///< keys and values of the speech token model over a long turn
  std::size_t flow = 0;          ///< the flow model's memory, twice while a window is being made

  std::size_t sum() const { return keys_values + encoder + speech_tokens + flow; }
};

/// Of the thinker, from the sizes in config.json.
session_memory thinking_memory(const model_config& model, int context_tokens, at::ScalarType dtype);

/// The same including the talker. `voice`: any one, to measure with.
session_memory speaking_memory(session_memory thinking, const talker& speaker, const speech::voice& voice);

/// Bytes of the checkpoint's tensors in this format. Tensors that are stored in it are mapped, and shared with other
/// processes.
std::size_t weight_bytes(const checkpoint& weights, at::ScalarType dtype);

/// How many prepared voices to cache: as many of the longest ones as a sixteenth of the free memory holds, between 2
/// and 64.
std::size_t voices_to_keep(const speech::voice& voice, std::size_t free_bytes);

/// Bytes still available on a device. Throws std::runtime_error when the device does not tell.
std::size_t free_memory(at::Device device);

} // namespace parley::inference
