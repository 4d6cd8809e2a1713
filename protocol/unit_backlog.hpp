#pragma once

#include "protocol/unit_gatherer.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace parley::protocol {

/// Units that wait for their step: newest wins (PROTOCOL.md 6.6). Units of one append never push each other out, so an
/// append of ten seconds may exceed the limit by itself.
///
/// What is dropped while a step runs is kept aside until the next step begins: if it turns out that the step took so
/// long because its worker is lost, the units come back.
class unit_backlog {
public:
  /// At most `keep_aside` dropped units can come back.
  explicit unit_backlog(std::size_t keep_aside = 0) : keep_aside_(keep_aside) {}

  /// Adds the units of one append. What exceeds the limit is dropped by `trim`.
  void push(std::vector<gathered_unit>& units);

  /// Drops the oldest units until `limit` are left or all are of append `keep`. An interrupt is never lost: dropped
  /// `force_listen` flags pass to the oldest unit kept.
  void trim(std::size_t limit, std::uint64_t keep);

  /// Takes the oldest unit, for its step. What was dropped is gone now.
  std::optional<gathered_unit> pop();

  /// Undoes what was dropped since the last `pop`.
  void bring_back();

  const gathered_unit* next() const { return units_.empty() ? nullptr : &units_.front(); }
  std::size_t size() const { return units_.size(); }
  std::int64_t dropped() const { return dropped_; }

private:
  std::deque<gathered_unit> units_;
  std::deque<gathered_unit> aside_; ///< dropped since the last `pop`
  std::size_t keep_aside_;
  bool forced_ = false; ///< of units that were dropped since then and were too many to be kept aside
  std::int64_t dropped_ = 0;
};

} // namespace parley::protocol
