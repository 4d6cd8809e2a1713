#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <utility>

namespace parley::inference {

/// What was used last, by key; the least recently used one is dropped first. Looked through from the front, so keep it
/// small.
template<class Key, class Value>
class recently_used {
public:
  explicit recently_used(std::size_t most) : most_(most) {}

  /// Valid until something is put or dropped; null = it is not there.
  Value* find(const Key& key) {
    const auto found = std::ranges::find(items_, key, &item::first);
    if (found == items_.end()) return nullptr;
    items_.splice(items_.begin(), items_, found);
    return &items_.front().second;
  }

  void put(Key key, Value value) {
    if (most_ == 0 || find(key)) return;
    if (items_.size() == most_) drop_oldest();
    items_.emplace_front(std::move(key), std::move(value));
  }

  /// False when there is nothing left.
  bool drop_oldest() {
    if (items_.empty()) return false;
    items_.pop_back();
    return true;
  }

  std::size_t size() const { return items_.size(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

private:
  using item = std::pair<Key, Value>;

  std::size_t most_;
  std::list<item> items_; ///< most recent first
};

} // namespace parley::inference
