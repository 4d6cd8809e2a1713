#pragma once

#include "actors/recording/recording_facts.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace parley::actors {

/// What may be kept of recordings; 0 = no limit.
struct retention {
  double days = 0;
  std::int64_t bytes = 0;
};

/// The recordings to delete: those that are too old, then the oldest until the rest fits. Those in progress stay, but
/// their bytes count. `newest_first` is what recording_index::list returns.
std::vector<recording_facts> to_forget(const std::vector<recording_facts>& newest_first, const retention& keep,
                                       std::int64_t now_ms);

} // namespace parley::actors
