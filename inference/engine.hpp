#pragma once

#include "conversation/unit_cost.hpp"
#include "inference/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace parley::config {
struct settings;
}

namespace parley::inference {

/// What a gateway needs to know about an engine before giving it sessions.
struct engine_info {
  std::string model;       ///< name of the checkpoint folder
  std::string fingerprint; ///< hash of config and weights; equal ones give equal answers
  std::string device;
  int slots = 0;          ///< sessions that it accepts at first
  int context_tokens = 0; ///< limit of a session's KV cache
  bool hears = false;     ///< what the checkpoint and this build can do
  bool sees = false;
  bool speaks = false;
  conversation::unit_cost unit; ///< what one second of a duplex session takes of the context
};

/// What an engine holds right now, and its counters.
struct engine_capacity {
  int kv_pages = 0; ///< pages of the KV cache, all sessions together
  int kv_pages_free = 0;
  std::uint64_t voice_hits = 0;    ///< reference voices found in the cache
  std::uint64_t voice_misses = 0;  ///< reference voices that had to be prepared
  std::uint64_t prompt_hits = 0;   ///< prompts found in the cache
  std::uint64_t prompt_misses = 0; ///< prompts that had to be prefilled
  // Microseconds of the engine's thread.
  std::uint64_t unit_us = 0;   ///< for seconds of running conversations
  std::uint64_t window_us = 0; ///< for their ends, and for sliding windows
  std::uint64_t prompt_us = 0; ///< for sessions that open
  std::uint64_t chat_us = 0;
  std::uint64_t replay_us = 0;
  std::uint64_t waited_us = 0; ///< in which it was ready and had no core
  // Units that came late, by what took most of their time.
  std::uint64_t late_itself = 0;
  std::uint64_t late_units = 0; ///< those of others
  std::uint64_t late_background = 0;
  std::uint64_t late_core = 0;
  int slots = 0; ///< slots it can offer now, never fewer than open sessions; 0 = as in `engine_info`
};

/// Number of prompts of duplex sessions (system prompt and reference voice) whose rows an engine caches, the most
/// recently used ones.
inline constexpr std::size_t kept_prompts = 16;

/// Many sessions on one device. Not thread-safe: one thread makes all calls, and the sink is called on that thread.
/// Commands are cheap; the work is done in `advance`, so a command waits for one token at most.
class engine {
public:
  using sink = std::function<void(event&&)>;

  virtual ~engine() = default;

  virtual const engine_info& info() const = 0;

  /// Cheap: called after every pass.
  virtual engine_capacity capacity() const { return {}; }

  /// Takes a command. Never throws for anything that a client can cause; such failures become a `failed` event.
  virtual void handle(command&& order) = 0;

  /// One pass: each stage makes at most one batched call for the sessions that are ready for it (at most one decode
  /// step). Returns false when there is nothing left to do. Throws when its device is lost: then it is of no use any more.
  virtual bool advance() = 0;

  /// Called instead of `advance` when there has been nothing to do for a while. Takes about as long as a second of a few
  /// sessions. Returns true to be called again at once, if there is still nothing to do.
  virtual bool idle() { return false; }
};

/// Loads the checkpoint named in the settings. Throws std::runtime_error when it can't be loaded or the settings can't
/// be met.
std::unique_ptr<engine> make_engine(const config::settings& settings, engine::sink sink);

} // namespace parley::inference
