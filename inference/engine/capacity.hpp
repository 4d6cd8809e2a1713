#pragma once

#include "inference/talker.hpp"
#include "inference/thinker.hpp"

#include <cstddef>
#include <cstdint>

namespace parley::inference {

/// The cost of one second for many duplex sessions: a fixed part, and a part per session.
struct step_cost {
  double fixed_seconds = 0;
  double session_seconds = 0;
};

/// Runs the stages of a unit for one and for four artificial sessions: sound, prefill, a few tokens; with a talker,
/// also the speech tokens and the sound of a second in this voice. Without a talker, both pointers are null. Takes
/// seconds.
step_cost measure_step(const thinker& model, const talker* speaker, const std::shared_ptr<const speech::voice>& voice);

/// Seconds that these stages take once, for `count` artificial sessions.
double time_second(const thinker& model, const talker* speaker, const std::shared_ptr<const speech::voice>& voice,
                   int count);

/// From the seconds that one session and four take. Pure.
step_cost cost_from(double one, double four);

/// Runs the same stages once, measuring nothing. On a device also for as many sessions as it may have, so that no kernel
/// is loaded and no convolution planned while somebody waits.
void warm_up(const thinker& model, const talker* speaker, const std::shared_ptr<const speech::voice>& voice, int most);

/// How many sessions an engine can offer, and what limits them.
struct capacity {
  int slots = 0;     ///< to offer at first
  int by_memory = 0; ///< sessions that fit into the memory
  int by_speed = 0;  ///< sessions whose steps together take at most half a second
  int most = 0;      ///< upper limit for the slots, whatever the measured speed
};

/// Number of sessions that fit into `bytes` and whose steps together take at most half a second, between 1 and `most`.
/// Pure.
capacity find_capacity(const step_cost& cost, std::size_t bytes, std::size_t session_bytes, int most);

/// Number of sessions whose steps together take at most half a second, between 1 and `most`. Pure.
int slots_in_time(const step_cost& cost, int most);

/// The memory, in bytes, that a session may need.
struct session_memory {
  std::size_t keys_values = 0;   ///< keys and values of the language model, over the whole context
  std::size_t encoder = 0;       ///< keys and values of the audio encoder, until its cache is emptied
  std::size_t speech_tokens = 0; ///< keys and values of the speech token model over a long turn
  std::size_t flow = 0;          ///< what the flow model remembers late in a turn, and the vocoder

  std::size_t sum() const { return keys_values + beside_keys_values(); }

  /// What a session takes whether its context is full or not.
  std::size_t beside_keys_values() const { return encoder + speech_tokens + flow; }

  /// What it takes with a quarter of its context: with less for each, sessions would mostly wait for each other's pages.
  std::size_t least() const { return keys_values / 4 + beside_keys_values(); }
};

/// Pages for the KV pool of this many sessions: enough for the whole context of each, or what is left of `bytes`, but
/// always enough for the context of one. `limit`: pages of a full context, whose bytes `each` counts. Pure.
int pages_for_sessions(int sessions, int limit, const session_memory& each, std::size_t bytes);

/// The part of a device's free memory that sessions may take. The rest is for what a batch computes, and on the CPU for
/// other programs, too.
std::size_t memory_for_sessions(std::size_t free_bytes, at::Device device);

/// The most sessions that an engine offers, whatever the device could carry.
int most_sessions(at::Device device);

/// For the thinker, from the sizes in config.json.
session_memory thinking_memory(const model_config& model, int context_tokens, at::ScalarType dtype);

/// Bytes that a talker's sessions remember.
struct speech_memory {
  std::size_t token_row = 0; ///< of a word or speech token, in the speech token model
  std::size_t mel_row = 0;   ///< of a mel row, in the flow model
  std::size_t rest = 0;      ///< what the flow's convolutions look back to, and the vocoder
};

/// `voice`: any voice, to measure with.
speech_memory speech_memory_of(const talker& speaker, const speech::voice& voice);

/// The same including the talker, for sessions with voices of `voice_rows` mel rows; nothing is counted as shared with
/// the voice itself. Pure.
session_memory speaking_memory(session_memory thinking, const speech_memory& speaking, std::int64_t voice_rows);

/// Bytes of the checkpoint's tensors in this format. Tensors stored in that format are mapped, and shared with other
/// processes.
std::size_t weight_bytes(const checkpoint& weights, at::ScalarType dtype);

/// How many prepared voices to cache: as many of the longest as fit into a sixteenth of the free memory, 2 to 64.
std::size_t voices_to_keep(const speech::voice& voice, std::size_t free_bytes);

/// Bytes still available on a device. Throws std::runtime_error if the device does not report it.
std::size_t free_memory(at::Device device);

} // namespace parley::inference
