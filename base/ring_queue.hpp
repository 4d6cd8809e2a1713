#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace parley::base {

/// A queue in one array, which it allocates with its first item; std::deque takes 600 bytes before that. T must be
/// default-constructible. Not thread-safe.
template<class T>
class ring_queue {
public:
  ring_queue() = default;
  ring_queue(ring_queue&& other) noexcept { swap(other); }
  ring_queue& operator=(ring_queue&& other) noexcept {
    ring_queue(std::move(other)).swap(*this);
    return *this;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  /// Items from the oldest on. `n` must be below `size()`.
  T& operator[](std::size_t n) { return slots_[(first_ + n) & (capacity_ - 1)]; }
  const T& operator[](std::size_t n) const { return slots_[(first_ + n) & (capacity_ - 1)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }

  void push_back(T item) {
    if (size_ == capacity_) move_to(std::max<std::size_t>(2 * capacity_, 4));
    (*this)[size_++] = std::move(item);
  }

  /// The queue must not be empty. Returns memory to the system when few of many items are left.
  void pop_front() {
    front() = T();
    first_ = (first_ + 1) & (capacity_ - 1);
    --size_;
    if (capacity_ > kept_capacity && size_ < capacity_ / 8) move_to(capacity_ / 2);
  }

  void clear() { *this = ring_queue(); }

private:
  static constexpr std::size_t kept_capacity = 64;

  void swap(ring_queue& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(capacity_, other.capacity_);
    std::swap(first_, other.first_);
    std::swap(size_, other.size_);
  }

  void move_to(std::size_t capacity) {
    auto slots = std::make_unique<T[]>(capacity);
    for (std::size_t n = 0; n < size_; ++n) slots[n] = std::move((*this)[n]);
    slots_ = std::move(slots);
    capacity_ = capacity;
    first_ = 0;
  }

  std::unique_ptr<T[]> slots_;
  std::size_t capacity_ = 0; ///< 0 or a power of two
  std::size_t first_ = 0, size_ = 0;
};

} // namespace parley::base
