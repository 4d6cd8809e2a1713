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

/// Runs a unit's stages for one and for four made-up sessions: sound, prefill, a few tokens; with a talker also the speech
/// tokens and the sound of a second, in this voice.
step_cost measure_step(const thinker& model, const talker* speaker, const std::shared_ptr<const speech::voice>& voice);

struct capacity {
  int slots = 0;
  int by_memory = 0;
  int by_speed = 0;
};

/// Sessions that fit into half of `free_bytes` and whose steps together take at most half of a second, at least 1 and at
/// most 64. Pure.
capacity find_capacity(const step_cost& cost, std::size_t free_bytes, std::size_t session_bytes);

/// What a session may come to hold: keys and values of the language model and of the audio encoder.
std::size_t session_bytes(const thinker& model, int context_tokens);

/// What a session that speaks may come to hold besides: keys and values of the speech tokens' model over a long turn, and the
/// flow model's memory, twice while a window is made. `voice`: any one, to measure by.
std::size_t speech_bytes(const talker& speaker, const speech::voice& voice);

/// How many prepared voices to keep: what a sixteenth of the free memory holds of the longest ones, at least 2 and at most 64.
std::size_t voices_to_keep(const speech::voice& voice, std::size_t free_bytes);

/// Memory that can still be taken on a device. Throws std::runtime_error when the device does not say.
std::size_t free_memory(at::Device device);

} // namespace parley::inference
