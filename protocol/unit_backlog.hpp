#pragma once

#include "protocol/unit_gatherer.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace parley::protocol {

/// Units that wait for their step: newest wins (PROTOCOL.md 6.6). Units of one append never push each other out, so an
/// append of ten seconds may exceed the limit by itself.
class unit_backlog {
public:
  /// Adds the units of one append. What exceeds the limit is dropped by `trim`.
  void push(std::vector<gathered_unit>& units);

  /// Drops the oldest units until `limit` are left or all are of append `keep`. An interrupt is never lost: dropped
  /// `force_listen` flags pass to the oldest unit kept.
  void trim(std::size_t limit, std::uint64_t keep);

  std::optional<gathered_unit> pop();

  const gathered_unit* next() const { return units_.empty() ? nullptr : &units_.front(); }
  std::size_t size() const { return units_.size(); }
  std::int64_t dropped() const { return dropped_; }

private:
  std::deque<gathered_unit> units_;
  std::int64_t dropped_ = 0;
};

} // namespace parley::protocol
