#pragma once

#include <atomic>
#include <cstdint>

namespace parley::net {

/// What became of spans, for GET /metrics. Thread-safe.
struct span_counts {
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> dropped{0}; ///< too many waited
  std::atomic<std::uint64_t> failed{0};  ///< the collector could not be reached, or did not take them
};

} // namespace parley::net
