#include "inference/llm/page_table.hpp"

namespace parley::inference::llm {

page_table::page_table(int pages, int pages_per_home)
    : holders_(static_cast<std::size_t>(pages)), pages_per_home_(pages_per_home), free_(pages) {}

std::optional<std::int32_t> page_table::take(std::int32_t last) {
  if (free_ == 0) return std::nullopt;
  const auto chosen = last >= 0 && usable(last + 1) ? last + 1 : start_of_run();
  holders_[static_cast<std::size_t>(chosen)] = 1;
  --free_;
  return chosen;
}

std::optional<std::int32_t> page_table::take_apart() {
  if (free_ == 0) return std::nullopt;
  auto chosen = size() - 1;
  while (!usable(chosen)) --chosen;
  holders_[static_cast<std::size_t>(chosen)] = 1;
  --free_;
  return chosen;
}

void page_table::give_back(std::int32_t page) {
  if (--holders_[static_cast<std::size_t>(page)] == 0) ++free_;
}

std::int32_t page_table::start_of_run() const {
  for (auto home = 0; home < size(); home += pages_per_home_)
    if (usable(home)) return home;
  auto longest = 0, length = 0;
  for (auto page = 0; page < size();) {
    const auto begin = page;
    while (usable(page)) ++page;
    if (page - begin > length) {
      longest = begin;
      length = page - begin;
    }
    ++page;
  }
  return longest + length / 2; // leaves half for the cache before it to grow
}

} // namespace parley::inference::llm
