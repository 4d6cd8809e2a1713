#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace parley::inference::text {

/// A map from 64-bit keys to small values: open addressing in one array, filled once, at most half full. The key ~0 is
/// reserved.
template<class Value>
class flat_map {
public:
  explicit flat_map(std::size_t entries = 0) : slots_(std::bit_ceil(2 * entries + 2)) {}

  /// Keeps the first value inserted for a key.
  void insert(std::uint64_t key, Value value) {
    if (2 * ++size_ > slots_.size()) grow();
    auto& slot = slots_[find_slot(slots_, key)];
    if (slot.key == free) slot = {key, value};
  }

  const Value* find(std::uint64_t key) const {
    const auto& slot = slots_[find_slot(slots_, key)];
    return slot.key == key ? &slot.value : nullptr;
  }

private:
  static constexpr std::uint64_t free = ~0ULL;
  struct slot_type {
    std::uint64_t key = free;
    Value value{};
  };

  static std::size_t find_slot(const std::vector<slot_type>& slots, std::uint64_t key) {
    auto hash = key * 0x9E3779B97F4A7C15ULL;
    auto at = (hash ^ hash >> 32) & (slots.size() - 1);
    while (slots[at].key != key && slots[at].key != free) at = (at + 1) & (slots.size() - 1);
    return at;
  }

  void grow() {
    std::vector<slot_type> larger(2 * slots_.size());
    for (const auto& slot : slots_)
      if (slot.key != free) larger[find_slot(larger, slot.key)] = slot;
    slots_.swap(larger);
  }

  std::vector<slot_type> slots_;
  std::size_t size_ = 0;
};

} // namespace parley::inference::text
