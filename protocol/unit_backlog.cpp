#include "protocol/unit_backlog.hpp"

#include <iterator>
#include <utility>

namespace parley::protocol {

void unit_backlog::push(std::vector<gathered_unit>& units) {
  std::move(units.begin(), units.end(), std::back_inserter(units_));
  units.clear();
}

void unit_backlog::trim(std::size_t limit, std::uint64_t keep) {
  bool forced = false;
  while (units_.size() > limit && units_.front().append != keep) {
    forced |= units_.front().force_listen;
    units_.pop_front();
    ++dropped_;
  }
  if (!units_.empty()) units_.front().force_listen |= forced;
}

std::optional<gathered_unit> unit_backlog::pop() {
  if (units_.empty()) return std::nullopt;
  gathered_unit unit = std::move(units_.front());
  units_.pop_front();
  return unit;
}

} // namespace parley::protocol
