#pragma once

#include <cstddef>
#include <set>

namespace parley::inference::testing {

/// The memory of the pretend device: pages that nobody may read or write but for a `memory_access`. `bytes` > 0. Null =
/// the machine has none left.
void* take_device_memory(std::size_t bytes);
void return_device_memory(void* begin);

/// Whether it points into such memory.
bool is_device_memory(const void* p);

/// Lets this process read and write the blocks that are named to it, while it exists: what a kernel does.
class memory_access {
public:
  memory_access() = default;
  ~memory_access();
  memory_access(const memory_access&) = delete;
  memory_access& operator=(const memory_access&) = delete;

  /// The whole block that `p` points into. Throws std::logic_error when it is none of the device's.
  void open(const void* p);

  /// Whether the block that `p` points into was opened here.
  bool covers(const void* p) const;

private:
  std::set<void*> opened_; ///< where blocks begin
};

} // namespace parley::inference::testing
