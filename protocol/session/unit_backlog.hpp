#pragma once

#include "protocol/session/unit_gatherer.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace parley::protocol {

/// Units that wait for their step: newest wins (docs/protocol.md 6.6). Units of one append never push each other out,
/// so an append of ten seconds alone may exceed the limit.
///
/// What is dropped while a step runs is set aside until the next step begins: if it turns out that the step took so
/// long because its worker is lost, those units come back.
class unit_backlog {
public:
  /// At most `keep_aside` dropped units can come back.
  explicit unit_backlog(std::size_t keep_aside = 0) : keep_aside_(keep_aside) {}

  /// Adds the units of one append. `trim` drops what exceeds the limit.
  void push(std::vector<gathered_unit>& units);

  /// Drops the oldest units until `limit` are left, or all that are left are of append `keep`. An interruption is never
  /// lost: dropped `force_listen` flags pass to the oldest unit kept.
  void trim(std::size_t limit, std::uint64_t keep);

  /// Removes and returns the oldest unit, for its step. What was dropped is gone for good now.
  std::optional<gathered_unit> pop();

  /// Restores what was dropped since the last `pop`.
  void bring_back();

  const gathered_unit* next() const { return units_.empty() ? nullptr : &units_.front(); }
  std::size_t size() const { return units_.size(); }
  std::int64_t dropped() const { return dropped_; }

private:
  std::deque<gathered_unit> units_;
  std::deque<gathered_unit> aside_; ///< dropped since the last `pop`
  std::size_t keep_aside_;
  bool forced_ = false; ///< units dropped since then that were too many to be set aside
  std::int64_t dropped_ = 0;
};

} // namespace parley::protocol
