#include "inference/kernels/huge_pages.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <utility>

namespace parley::inference::cpu {

namespace {

constexpr std::size_t page = 2 << 20, slab_bytes = 64 << 20, least_bytes = 1 << 20, alignment = 64;

/// Zeroed memory that begins at the start of a huge page. Memory that is never touched costs nothing.
class slab {
public:
  explicit slab(std::size_t bytes)
      : mapped_(bytes + page),
        start_(::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (!valid()) return;
    const auto address = reinterpret_cast<std::uintptr_t>(start_);
    next_ = static_cast<std::byte*>(start_) + (page - address % page) % page;
    end_ = next_ + bytes;
    ::madvise(next_, bytes, MADV_HUGEPAGE); // a hint: small pages do as well
  }
  slab(const slab&) = delete;
  slab& operator=(const slab&) = delete;
  ~slab() {
    if (valid()) ::munmap(start_, mapped_);
  }

  bool valid() const { return start_ != MAP_FAILED; }

  /// nullptr if there is no room left.
  void* take(std::size_t bytes) {
    if (!valid() || bytes > static_cast<std::size_t>(end_ - next_)) return nullptr;
    auto* place = next_;
    next_ += std::min(static_cast<std::size_t>(end_ - next_), (bytes + alignment - 1) / alignment * alignment);
    return place;
  }

private:
  std::size_t mapped_;
  void* start_;
  std::byte *next_ = nullptr, *end_ = nullptr;
};

/// Memory for `bytes` bytes, and the slab that owns it. The memory is nullptr if the system refuses.
std::pair<void*, std::shared_ptr<slab>> place_for(std::size_t bytes) {
  static std::mutex mutex;
  static std::weak_ptr<slab> latest; // ends with the last tensor in it
  const std::lock_guard lock(mutex);
  auto in = latest.lock();
  auto* place = in ? in->take(bytes) : nullptr;
  if (place == nullptr) {
    in = std::make_shared<slab>(std::max(slab_bytes, (bytes + page - 1) / page * page));
    latest = in;
    place = in->take(bytes);
  }
  return {place, std::move(in)};
}

} // namespace

at::Tensor in_huge_pages(const at::Tensor& matrix) {
  const auto bytes = matrix.nbytes();
  if (!matrix.is_cpu() || !matrix.is_contiguous() || bytes < least_bytes) return matrix;
  auto [place, owner] = place_for(bytes);
  if (place == nullptr) return matrix;
  auto moved = at::from_blob(
      place, matrix.sizes(), [owner = std::move(owner)](void*) {}, matrix.options());
  return moved.copy_(matrix);
}

} // namespace parley::inference::cpu
