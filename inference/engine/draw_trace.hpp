#pragma once

#include "inference/engine/draw_observer.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace parley::inference {

/// Logs the margin of each draw of a unit. Two runs of a conversation that round differently may diverge only where a
/// margin is small, so tests compare runs by margins. Costs a few percent of a speaking second.
class draw_trace final : public draw_observer {
public:
  std::vector<llm::draw_record>& text(session_id id) override { return text_[id]; }
  std::vector<double>& speech(session_id id) override { return speech_[id]; }
  void unit_begun(session_id id) override;
  void unit_done(session_id id, std::uint64_t seed, std::uint64_t unit, std::span<const std::int64_t> spoken) override;
  void session_ended(session_id id) override;

private:
  /// The unit in one line, with `spoken` as its speech tokens:
  ///   draws of unit 4, seed 11: text 0.21 0.003; speech 812 17:0.00012 90:0.00007
  /// These are the margins of the text's draws, then each speech token with its margin, if it was drawn and not known
  /// before.
  std::string line(session_id id, std::uint64_t seed, std::uint64_t unit, std::span<const std::int64_t> spoken) const;

  std::map<session_id, std::vector<llm::draw_record>> text_;
  std::map<session_id, std::vector<double>> speech_;
};

} // namespace parley::inference
