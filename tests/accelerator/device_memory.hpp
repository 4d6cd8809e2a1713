#pragma once

#include <cstddef>
#include <set>

namespace parley::inference::testing {

/// Allocates memory of the pretend device, which can be read and written only while a `memory_access` has it open.
/// `bytes` > 0. Null = the machine has none left.
void* take_device_memory(std::size_t bytes);
void return_device_memory(void* begin);

/// Whether it points into such memory.
bool is_device_memory(const void* p);

/// While it exists, this process may read and write the blocks that it has opened, as a kernel may.
class memory_access {
public:
  memory_access();
  ~memory_access();
  memory_access(const memory_access&) = delete;
  memory_access& operator=(const memory_access&) = delete;

  /// Opens the whole block that `p` points into. Throws std::logic_error if that is not memory of the device.
  void open(const void* p);

  /// Whether the block that `p` points into was opened here.
  bool covers(const void* p) const;

  /// Whether this thread does a kernel's work.
  static bool exists();

private:
  std::set<void*> opened_; ///< where blocks begin
};

} // namespace parley::inference::testing
