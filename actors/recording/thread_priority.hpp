#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace parley::actors {

/// Lowers this thread's priority below that of every session's thread (on Linux each thread has its own niceness).
/// Writing a moment later does no harm; answering a unit later does.
inline void lower_thread_priority() {
  constexpr int niceness = 10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), niceness);
}

} // namespace parley::actors
