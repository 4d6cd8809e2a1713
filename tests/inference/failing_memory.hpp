#pragma once

#include <cstdint>
#include <limits>

namespace parley::inference::testing {

/// Memory that runs out when a test says so: of the requests to `operator new` on the test's own thread, while it
/// `counts`, numbers [from, to) fail.
struct memory {
  static constexpr auto never = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t asked = 0; ///< how often so far
  std::uint64_t from = never, to = never;
  bool counts = false;
};
extern thread_local constinit memory here;

} // namespace parley::inference::testing
