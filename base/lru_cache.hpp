#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <utility>

namespace parley::base {

/// A cache that drops the least recently used item first. Searched linearly from the front, so keep it small, or let
/// keys compare a hash first. Not thread-safe.
template<class Key, class Value>
class lru_cache {
public:
  /// Holds up to `capacity` items; with 0 it keeps nothing.
  explicit lru_cache(std::size_t capacity) : capacity_(capacity) {}

  /// Finds the item whose key compares equal to `wanted`, and makes it the most recently used one. Valid until
  /// something is put or dropped; null = not found.
  template<class Wanted>
  Value* find(const Wanted& wanted) {
    const auto found = std::ranges::find_if(items_, [&](const auto& item) { return item.first == wanted; });
    if (found == items_.end()) return nullptr;
    items_.splice(items_.begin(), items_, found);
    return &items_.front().second;
  }

  /// If the key exists, it keeps its value.
  void put(Key key, Value value) {
    if (capacity_ == 0 || find(key)) return;
    if (items_.size() == capacity_) drop_oldest();
    items_.emplace_front(std::move(key), std::move(value));
  }

  /// Returns false if nothing is left.
  bool drop_oldest() {
    if (items_.empty()) return false;
    items_.pop_back();
    return true;
  }

  std::size_t size() const { return items_.size(); }
  auto begin() const { return items_.begin(); } ///< pairs of key and value, most recent first
  auto end() const { return items_.end(); }

private:
  std::size_t capacity_;
  std::list<std::pair<Key, Value>> items_; ///< most recent first
};

} // namespace parley::base
