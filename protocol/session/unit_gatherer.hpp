#pragma once

#include "conversation/engine.hpp"
#include "protocol/events.hpp"
#include "protocol/time_point.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parley::protocol {

/// One second of input, ready for a step.
struct gathered_unit : conversation::unit_input {
  std::uint64_t append = 0; ///< ordinal of the append that completed it
  std::string input_id;     ///< name of that append
  time_point received;      ///< when that append arrived
};

/// Bytes of messages, as they count towards `max_waiting_context`.
std::size_t bytes_of(const std::vector<text_message>& context);

/// Cuts appends of any length into units (docs/protocol.md 6.1). If a session's first append is shorter than a unit,
/// silence before it makes it one. A sample is copied at most once, and not at all if an append is exactly one unit and
/// nothing is pending. Frames belong to the first unit that their append completes; if there is none they wait, the
/// newest `max_waiting_frames` of them. So does context, all of it.
class unit_gatherer {
public:
  explicit unit_gatherer(int max_slice_nums) : session_slices_(max_slice_nums) {}

  /// Appends the completed units to `out`, oldest first.
  void append(append_event event, std::uint64_t ordinal, time_point now, std::vector<gathered_unit>& out);

  /// Number of samples in the incomplete unit.
  std::size_t pending_samples() const { return partial_ ? partial_->size() : 0; }

  /// Context that waits for a unit.
  const std::vector<text_message>& pending_context() const { return context_; }

private:
  gathered_unit finish(pcm samples, bool forced, const append_event& of, std::uint64_t ordinal, time_point now);

  int session_slices_;
  bool begun_ = false; ///< an append has arrived
  std::shared_ptr<std::vector<float>> partial_;
  bool partial_forced_ = false; ///< an append with force_listen has samples in `partial_`
  std::vector<image_file> frames_;
  int frame_slices_ = 1; ///< from the newest append with frames
  std::vector<text_message> context_;
};

} // namespace parley::protocol
