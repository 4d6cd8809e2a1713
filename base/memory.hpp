#pragma once

namespace parley::base {

/// Keeps up to 64 MB of freed memory in each of the allocator's arenas, instead of returning it to the system at once.
/// A session's buffers (frames, sound) are some 100 KB, made and freed every second: with glibc's defaults the kernel
/// clears their pages anew each time. To be called before the first thread starts.
void keep_freed_memory();

} // namespace parley::base
