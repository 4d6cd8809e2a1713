#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace parley::actors {

/// This thread runs when no session's thread wants to: on Linux each thread has a niceness of its own. What is written
/// a moment later is as good; a unit that is answered later is not.
inline void step_back() {
  constexpr int niceness = 10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), niceness);
}

} // namespace parley::actors
