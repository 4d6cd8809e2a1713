#pragma once

#include "inference/llm/sampling.hpp"
#include "inference/vocabulary.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference {

/// Receives each session's random draws with their margins. Called on the engine's thread only.
class draw_observer {
public:
  virtual ~draw_observer() = default;

  /// The engine appends a session's draws of text, and the margins of its draws of speech, to these until `session_ended`.
  virtual std::vector<llm::draw_record>& text(session_id id) = 0;
  virtual std::vector<double>& speech(session_id id) = 0;

  virtual void unit_begun(session_id) {}
  /// `spoken`: the unit's speech tokens.
  virtual void unit_done(session_id, std::uint64_t /*seed*/, std::uint64_t /*unit*/,
                         std::span<const std::int64_t> /*spoken*/) {}
  virtual void session_ended(session_id) {}
};

} // namespace parley::inference
