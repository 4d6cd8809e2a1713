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

/// The recordings that have to go: those that are too old, then the oldest until the rest fits. What still grows stays,
/// but its bytes count. `newest_first` as of recording_index::list.
std::vector<recording_facts> to_forget(const std::vector<recording_facts>& newest_first, const retention& keep,
                                       std::int64_t now_ms);

} // namespace parley::actors
