#include "inference/vocoder/row_history.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace parley::inference::speech {

std::vector<std::int64_t> row_history::where() const {
  if (!counted_) return {};
  auto all = *counted_;
  for (auto& row : all) row += begin();
  return all;
}

void row_history::keep_ends(std::int64_t front, std::int64_t back) {
  const auto& all = *counted_;
  numbers kept(all.begin(), all.begin() + front);
  kept.insert(kept.end(), all.end() - back, all.end());
  count(std::move(kept));
}

void row_history::repeat() {
  auto twice = *counted_;
  twice.insert(twice.end(), counted_->begin(), counted_->end());
  count(std::move(twice));
}

std::size_t row_history::row_bytes() const {
  return home_ ? home_->region->pool().row_bytes() : 0;
}

std::size_t row_history::region_bytes() const {
  return home_ ? static_cast<std::size_t>(home_->region->count()) * row_bytes() : 0;
}

void row_history::count(numbers rows) {
  auto made = std::make_shared<const numbers>(std::move(rows));
  std::erase_if(home_->counted, [](const auto& one) { return one.expired(); });
  home_->counted.push_back(made);
  counted_ = std::move(made);
}

row_writes::row_writes(const row_pool& in, std::span<row_history* const> of, std::span<const std::int64_t> fresh,
                       how written)
    : pool_(in), how_(written) {
  std::vector<std::vector<std::int64_t>> targets(of.size());
  std::vector<std::size_t> movers;
  std::int64_t needed = 0;
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (stay(*of[i], fresh[i], targets[i])) continue;
    movers.push_back(i);
    needed += wanted(*of[i], fresh[i]);
  }
  pool_.reserve(needed);
  for (const auto i : movers) settle(*of[i], fresh[i], targets[i]);

  for (std::size_t i = 0; i < of.size(); ++i)
    for (const auto row : targets[i]) planned_.push_back(of[i]->begin() + row);
}

void row_writes::pad(std::int64_t first, std::int64_t count) {
  for (std::int64_t n = 0; n < count; ++n) planned_.push_back(first + n);
}

void row_writes::add_to(packed_upload& numbers) {
  target_part_ = numbers.add(planned_);
}

/// Counts the new rows in the region that the history has, if there is room. `targets`: rows of the region.
bool row_writes::stay(row_history& of, std::int64_t fresh, std::vector<std::int64_t>& targets) {
  if (!of.home_ || of.home_->region->pool() != pool_) return false;
  auto room = find_room(of, fresh);
  if (std::ssize(room) < fresh) return false;
  targets.assign(room.begin(), room.begin() + fresh);
  auto kept = *of.counted_;
  if (how_.rows == layout::dense) { // rows behind the last one that will be counted move into what else is free
    const auto end = of.rows() + fresh;
    auto hole = room.begin() + fresh;
    auto& moved = moves_from(pool_);
    for (auto& row : kept)
      if (row >= end) {
        moved.sources.push_back(of.begin() + row);
        moved.targets.push_back(of.begin() + *hole);
        row = *hole++;
      }
  }
  kept.insert(how_.fresh == side::front ? kept.begin() : kept.end(), targets.begin(), targets.end());
  of.count(std::move(kept));
  return true;
}

/// Rows of the region that nobody counts: as many as are wanted or, if the history is to be dense, all those among the
/// first rows, of which it will have all. Fewer than `fresh` if there is no room.
std::vector<std::int64_t> row_writes::find_room(const row_history& of, std::int64_t fresh) const {
  const auto size = of.home_->region->count(), end = of.rows() + fresh;
  std::vector<char> counted(static_cast<std::size_t>(size)), own(static_cast<std::size_t>(size));
  for (const auto& copy : of.home_->counted)
    if (const auto rows = copy.lock())
      for (const auto row : *rows) counted[static_cast<std::size_t>(row)] = 1;
  for (const auto row : *of.counted_) own[static_cast<std::size_t>(row)] = 1;
  const auto dense = how_.rows == layout::dense;
  if (dense && end > size) return {};
  std::vector<std::int64_t> room;
  for (std::int64_t row = 0; dense ? row < end : row < size && std::ssize(room) < fresh; ++row) {
    const auto n = static_cast<std::size_t>(row);
    if (!counted[n])
      room.push_back(row);
    else if (dense && !own[n])
      return {};
  }
  return room;
}

std::int64_t row_writes::wanted(const row_history& of, std::int64_t fresh) const {
  if (of.home_ && of.home_->region->pool() == pool_) return std::max(of.home_->region->count(), of.rows() + fresh);
  return of.rows() + std::max(fresh, pool_.spare());
}

/// Moves the history to another region and counts the new rows there. `targets`: rows of the region.
void row_writes::settle(row_history& of, std::int64_t fresh, std::vector<std::int64_t>& targets) {
  auto home = std::make_shared<row_history::home>();
  home->region = pool_.take(wanted(of, fresh));
  const auto past = of.rows(), begin = home->region->first();
  std::vector<std::int64_t> all;
  if (past > 0) {
    auto& moved = moves_from(of.home_->region->pool());
    for (const auto row : of.where()) {
      moved.sources.push_back(row);
      moved.targets.push_back(begin + std::ssize(all));
      all.push_back(std::ssize(all));
    }
  }
  for (std::int64_t n = 0; n < fresh; ++n) targets.push_back(past + n);
  all.insert(how_.fresh == side::front ? all.begin() : all.end(), targets.begin(), targets.end());
  left_.push_back(std::exchange(of.home_, std::move(home)));
  of.count(std::move(all));
}

row_writes::moves& row_writes::moves_from(const row_pool& pool) {
  const auto found = std::ranges::find(moves_, pool, &moves::from);
  return found != moves_.end() ? *found : moves_.emplace_back(pool);
}

void row_writes::move() const {
  constexpr std::int64_t most_bytes = std::int64_t{256} << 20; // held for the copy
  for (const auto& each : moves_) {
    if (each.sources.empty()) continue;
    packed_upload numbers;
    const auto source_part = numbers.add(each.sources), target_part = numbers.add(each.targets);
    numbers.send(pool_.part(0).device());
    const auto sources = numbers[source_part], targets = numbers[target_part];
    for (std::size_t n = 0; n < pool_.parts(); ++n) {
      const auto &to = pool_.part(n), &from = each.from.part(n);
      const auto depth = to.size(0), bytes = std::ssize(each.sources) * to.stride(1) * to.element_size();
      const auto step = std::max<std::int64_t>(1, most_bytes / std::max<std::int64_t>(1, bytes));
      for (std::int64_t first = 0; first < depth; first += step) {
        const auto count = std::min(step, depth - first);
        to.narrow(0, first, count).index_copy_(1, targets, from.narrow(0, first, count).index_select(1, sources));
      }
    }
  }
}

} // namespace parley::inference::speech
