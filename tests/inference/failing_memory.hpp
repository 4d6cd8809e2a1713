#pragma once

#include <cstdint>
#include <limits>

namespace parley::inference::testing {

/// Memory that runs out when a test says so: while it `counts`, calls of `operator new` on the test's own thread are
/// numbered, and those in [from, to) fail.
struct memory {
  static constexpr auto never = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t asked = 0; ///< calls so far
  std::uint64_t from = never, to = never;
  bool counts = false;
};
extern thread_local constinit memory here;

} // namespace parley::inference::testing
