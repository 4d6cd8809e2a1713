#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace parley::inference::llm {

/// Which pages of a pool are taken. A page is looked for right behind the caller's last one, so that a cache grows in one
/// run; a new cache starts at the beginning of a home of its own while one is free.
class page_table {
public:
  page_table(int pages, int pages_per_home);

  /// `last`: the caller's newest page, or -1. Nothing when all are taken.
  std::optional<std::int32_t> take(std::int32_t last);

  void give_back(std::int32_t page);

  int size() const { return static_cast<int>(taken_.size()); }
  int free() const { return free_; }

private:
  std::vector<bool> taken_;
  int pages_per_home_;
  int free_;
};

} // namespace parley::inference::llm
