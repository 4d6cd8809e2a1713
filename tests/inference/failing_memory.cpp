#include "tests/inference/failing_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace parley::inference::testing {

thread_local constinit memory here;

} // namespace parley::inference::testing

namespace {

bool given() {
  auto& here = parley::inference::testing::here;
  if (!here.counts) return true;
  const auto number = here.asked++;
  return number < here.from || number >= here.to;
}

} // namespace

// Like the library's own operators, except that they first ask whether to fail.

void* operator new(std::size_t size) {
  if (given())
    if (auto* made = std::malloc(std::max<std::size_t>(size, 1))) return made;
  throw std::bad_alloc();
}

void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  if (given())
    if (auto* made = std::aligned_alloc(unit, (std::max<std::size_t>(size, 1) + unit - 1) / unit * unit)) return made;
  throw std::bad_alloc();
}

void operator delete(void* of) noexcept {
  std::free(of);
}

void operator delete(void* of, std::size_t) noexcept {
  std::free(of);
}

void operator delete(void* of, std::align_val_t) noexcept {
  std::free(of);
}

void operator delete(void* of, std::size_t, std::align_val_t) noexcept {
  std::free(of);
}
