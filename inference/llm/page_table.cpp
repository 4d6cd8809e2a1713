#include "inference/llm/page_table.hpp"

namespace parley::inference::llm {

page_table::page_table(int pages, int pages_per_home)
    : taken_(static_cast<std::size_t>(pages)), pages_per_home_(pages_per_home), free_(pages) {}

std::optional<std::int32_t> page_table::take(std::int32_t last) {
  if (free_ == 0) return std::nullopt;
  auto usable = [&](std::int32_t page) { return page < size() && !taken_[static_cast<std::size_t>(page)]; };
  auto chosen = last + 1;
  if (last < 0 || !usable(chosen)) {
    chosen = 0;
    while (chosen < size() && !usable(chosen)) chosen += pages_per_home_;
    if (!usable(chosen))
      for (chosen = 0; !usable(chosen);) ++chosen;
  }
  taken_[static_cast<std::size_t>(chosen)] = true;
  --free_;
  return chosen;
}

void page_table::give_back(std::int32_t page) {
  taken_[static_cast<std::size_t>(page)] = false;
  ++free_;
}

} // namespace parley::inference::llm
