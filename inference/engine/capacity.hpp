#pragma once

#include "inference/talker.hpp"
#include "inference/thinker.hpp"

#include <cstddef>

namespace parley::inference {

/// What a second of many duplex sessions costs: a fixed part, and a part for each.
struct step_cost {
  double fixed_seconds = 0;
  double session_seconds = 0;
};

/// Runs a unit's stages for one and for four made-up sessions: sound, prefill, a few tokens; with a talker also the
/// speech tokens and the sound of a second, in this voice. Without a talker both pointers are null. Takes seconds.
step_cost measure_step(const thinker& model, const talker* speaker, const std::shared_ptr<const speech::voice>& voice);

/// How many sessions an engine can offer, and what limits them.
struct capacity {
  int slots = 0;     ///< to be offered at first
  int by_memory = 0; ///< that fit into half of the free memory
  int by_speed = 0;  ///< whose steps together take at most half of a second
  int most = 0;      ///< slots that there will ever be, if speed allows
};

/// Sessions that fit into half of `free_bytes` and whose steps together take at most half of a second, at least 1 and
/// at most 64. Pure.
capacity find_capacity(const step_cost& cost, std::size_t free_bytes, std::size_t session_bytes);

/// Sessions whose steps together take at most half of a second, at least 1 and at most `most`. Pure.
int slots_in_time(const step_cost& cost, int most);

/// What a session may come to hold, in bytes.
struct session_memory {
  std::size_t keys_values = 0;   ///< of the language model, over the whole context
  std::size_t encoder = 0;       ///< keys and values of the audio encoder, until it begins anew
  std::size_t speech_tokens = 0; ///< keys and values of the speech tokens' model over a long turn
  std::size_t flow = 0;          ///< the flow model's memory, twice while a window is made

  std::size_t sum() const { return keys_values + encoder + speech_tokens + flow; }
};

/// Of the half that thinks, by the sizes in config.json.
session_memory thinking_memory(const model_config& model, int context_tokens, at::ScalarType dtype);

/// The same with the half that speaks. `voice`: any one, to measure by.
session_memory speaking_memory(session_memory thinking, const talker& speaker, const speech::voice& voice);

/// Bytes that the checkpoint's tensors take in this format. Those that are stored so are mapped, and shared with other
/// processes.
std::size_t weight_bytes(const checkpoint& weights, at::ScalarType dtype);

/// How many prepared voices to keep: what a sixteenth of the free memory holds of the longest ones, at least 2 and at
/// most 64.
std::size_t voices_to_keep(const speech::voice& voice, std::size_t free_bytes);

/// Bytes that can still be taken on a device. Throws std::runtime_error when the device does not say.
std::size_t free_memory(at::Device device);

} // namespace parley::inference
