#pragma once

#include "conversation/unit_cost.hpp"
#include "inference/unit.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace parley::config {
struct settings;
}

namespace parley::inference {

/// What a gateway needs to know about an engine before it gives it sessions.
struct engine_info {
  std::string model;       ///< name of the checkpoint folder
  std::string fingerprint; ///< hash over config and weights: two engines with the same one answer alike
  std::string device;
  int slots = 0;          ///< sessions that it takes at a time, at first
  int context_tokens = 0; ///< limit of a session's KV cache
  bool hears = false;     ///< what the checkpoint and this build can do
  bool sees = false;
  bool speaks = false;
  conversation::unit_cost unit; ///< what a second of a duplex session takes of the context
};

/// What an engine holds at this moment, and what it has counted so far.
struct engine_load {
  int kv_pages = 0; ///< pages of the KV cache, all sessions together
  int kv_pages_free = 0;
  std::uint64_t voice_hits = 0;    ///< reference voices that were at hand,
  std::uint64_t voice_misses = 0;  ///< and those that had to be prepared
  std::uint64_t prompt_hits = 0;   ///< prompts whose rows another session had left,
  std::uint64_t prompt_misses = 0; ///< and those that had to be made
  int slots = 0;                   ///< that it can offer by now, none less than sessions are open; 0 = as its info says
};

/// Beginnings of duplex sessions, system prompt and reference voice, whose rows an engine keeps for the next one that has the
/// same: those used last.
inline constexpr std::size_t kept_prompts = 16;

/// Many sessions on one device. Not thread-safe: one thread calls everything, and the sink is called on that thread.
/// Commands cost little; the work is done in `advance`, so that a command waits for one token at most.
class engine {
public:
  using sink = std::function<void(event&&)>;

  virtual ~engine() = default;

  virtual const engine_info& info() const = 0;

  /// Costs next to nothing: asked for after every pass.
  virtual engine_load load() const { return {}; }

  /// Takes a command. Never throws for what a client can cause: that becomes a `failed` event.
  virtual void handle(command&& order) = 0;

  /// One pass: each stage makes at most one batched call for the sessions that are ready for it (one decode step at
  /// most). Returns false when there is nothing left to do.
  virtual bool advance() = 0;
};

/// Loads the checkpoint named in the settings. Throws std::runtime_error when it can't be loaded or the settings can't
/// be met.
std::unique_ptr<engine> make_engine(const config::settings& settings, engine::sink sink);

} // namespace parley::inference
