#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace parley::inference::llm {

/// Which caches hold which pages of a pool; each page counts its holders. A new page is taken directly after the
/// caller's last one if possible, so that a cache stays contiguous. Otherwise a new run starts at the beginning of an
/// unused home, or else in the middle of the longest stretch of free pages.
class page_table {
public:
  /// `pages_per_home`: the number of pages that one cache is expected to need.
  page_table(int pages, int pages_per_home);

  /// Takes a page for one holder. `last`: the caller's newest page, or -1. None if all are taken.
  std::optional<std::int32_t> take(std::int32_t last);

  /// Takes a page that will stay single: from the back, out of the way of growing caches.
  std::optional<std::int32_t> take_apart();

  /// Adds a holder to a taken page.
  void share(std::int32_t page) { ++holders_[static_cast<std::size_t>(page)]; }

  /// Removes a holder; a page without holders is free.
  void give_back(std::int32_t page);

  bool shared(std::int32_t page) const { return holders_[static_cast<std::size_t>(page)] > 1; }

  int size() const { return static_cast<int>(holders_.size()); }
  int free() const { return free_; }

private:
  bool usable(std::int32_t page) const { return page < size() && holders_[static_cast<std::size_t>(page)] == 0; }
  std::int32_t start_of_run() const;

  std::vector<std::uint32_t> holders_;
  int pages_per_home_;
  int free_;
};

} // namespace parley::inference::llm
