#pragma once

#include "protocol/session/unit_gatherer.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace parley::protocol {

/// Units that wait for their step: the newest win (docs/protocol.md 6.6). Units of one append never displace each
/// other, so a single append of ten seconds may exceed the limit. Context is never dropped: it passes to the next unit.
///
/// Units dropped while a step runs are set aside until the next step begins: if the step took so long because its
/// worker is lost, those units come back. The frames of all units take at most
/// `most_frame_bytes`; beyond that the oldest frames are dropped.
class unit_backlog {
public:
  static constexpr std::size_t most_frame_bytes = 64u << 20;

  /// At most `keep_aside` dropped units can come back.
  explicit unit_backlog(std::size_t keep_aside = 0) : keep_aside_(keep_aside) {}

  /// Adds the units of one append. `trim` drops what exceeds the limit.
  void push(std::vector<gathered_unit>& units);

  /// Drops the oldest units until `limit` are left, or only units of append `keep`. An interruption is never lost:
  /// `force_listen` of a dropped unit passes to the oldest unit that is left.
  void trim(std::size_t limit, std::uint64_t keep);

  /// Removes and returns the oldest unit, for its step. Dropped units are now gone for good.
  std::optional<gathered_unit> pop();

  /// Brings back the units dropped since the last `pop`.
  void bring_back();

  const gathered_unit* next() const { return units_.empty() ? nullptr : &units_.front(); }
  std::size_t size() const { return units_.size(); }

  /// Bytes of the context that waits.
  std::size_t context_bytes() const;
  std::int64_t dropped() const { return dropped_; }

private:
  void limit_frames();

  std::deque<gathered_unit> units_;
  std::deque<gathered_unit> aside_; ///< units dropped since the last `pop`
  std::vector<text_message> left_;  ///< context of dropped units
  std::size_t keep_aside_;
  bool forced_ = false; ///< whether units that could not be set aside had force_listen
  std::int64_t dropped_ = 0;
};

} // namespace parley::protocol
