#include "base/memory.hpp"

#include <malloc.h>

namespace parley::base {

void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20); // the highest that it accepts
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

} // namespace parley::base
