#include "tests/accelerator/device_memory.hpp"

#include <map>
#include <mutex>
#include <stdexcept>
#include <sys/mman.h>

namespace parley::inference::testing {

namespace {

struct block {
  std::size_t bytes;
  int users = 0; ///< kernels that work with it
};

struct all_memory {
  std::mutex mutex;
  std::map<const char*, block> blocks; ///< by where they begin

  std::map<const char*, block>::iterator containing(const void* p) {
    const auto* at = static_cast<const char*>(p);
    auto found = blocks.upper_bound(at);
    if (found == blocks.begin()) return blocks.end();
    --found;
    return at < found->first + found->second.bytes ? found : blocks.end();
  }
};

/// Never destroyed: tensors in static variables return theirs at the very end.
all_memory& memory() {
  static auto* all = new all_memory;
  return *all;
}

thread_local int kernels_at_work = 0;

} // namespace

void* take_device_memory(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  bytes = (bytes + page - 1) / page * page;
  auto* begin = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  const std::lock_guard lock(memory().mutex);
  memory().blocks[static_cast<char*>(begin)] = {bytes};
  return begin;
}

void return_device_memory(void* begin) {
  const std::lock_guard lock(memory().mutex);
  const auto found = memory().blocks.find(static_cast<char*>(begin));
  if (found == memory().blocks.end()) return;
  ::munmap(begin, found->second.bytes);
  memory().blocks.erase(found);
}

bool is_device_memory(const void* p) {
  const std::lock_guard lock(memory().mutex);
  return memory().containing(p) != memory().blocks.end();
}

memory_access::memory_access() {
  ++kernels_at_work;
}

memory_access::~memory_access() {
  --kernels_at_work;
  const std::lock_guard lock(memory().mutex);
  for (auto* begin : opened_)
    if (const auto found = memory().blocks.find(static_cast<char*>(begin));
        found != memory().blocks.end() && --found->second.users == 0)
      ::mprotect(begin, found->second.bytes, PROT_NONE);
}

void memory_access::open(const void* p) {
  const std::lock_guard lock(memory().mutex);
  const auto found = memory().containing(p);
  if (found == memory().blocks.end()) throw std::logic_error("the pretend device: not its memory");
  auto* begin = const_cast<char*>(found->first);
  if (!opened_.insert(begin).second) return;
  if (found->second.users++ == 0) ::mprotect(begin, found->second.bytes, PROT_READ | PROT_WRITE);
}

bool memory_access::exists() {
  return kernels_at_work > 0;
}

bool memory_access::covers(const void* p) const {
  const std::lock_guard lock(memory().mutex);
  const auto found = memory().containing(p);
  return found != memory().blocks.end() && opened_.contains(const_cast<char*>(found->first));
}

} // namespace parley::inference::testing
