#pragma once

#include "actors/recording/recording_facts.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace parley::actors {

/// Limits on the recordings to keep; 0 = no limit.
struct retention {
  double days = 0;
  std::int64_t bytes = 0;
};

/// The recordings to delete: those that are too old, then the oldest until the rest fits. Those in progress stay, but
/// their bytes count. `newest_first` comes from recording_index::list.
std::vector<recording_facts> to_forget(const std::vector<recording_facts>& newest_first, const retention& keep,
                                       std::int64_t now_ms);

} // namespace parley::actors
