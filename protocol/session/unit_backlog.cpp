#include "protocol/session/unit_backlog.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace parley::protocol {

void unit_backlog::push(std::vector<gathered_unit>& units) {
  std::move(units.begin(), units.end(), std::back_inserter(units_));
  units.clear();
}

void unit_backlog::trim(std::size_t limit, std::uint64_t keep) {
  for (; units_.size() > limit && units_.front().append != keep; units_.pop_front()) {
    auto& context = units_.front().context;
    std::move(context.begin(), context.end(), std::back_inserter(left_));
    context.clear();
    aside_.push_back(std::move(units_.front()));
    ++dropped_;
  }
  for (; aside_.size() > keep_aside_; aside_.pop_front()) forced_ |= aside_.front().force_listen;
  limit_frames();
}

/// Drops the oldest frames beyond the limit, but not the sound of their units, which is small.
void unit_backlog::limit_frames() {
  std::size_t bytes = 0;
  const auto limit = [&](std::deque<gathered_unit>& units) {
    for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
      for (const auto& frame : unit->frames) bytes += frame->size();
      if (bytes > most_frame_bytes) unit->frames.clear();
    }
  };
  limit(units_);
  limit(aside_);
}

std::optional<gathered_unit> unit_backlog::pop() {
  if (units_.empty()) return std::nullopt;
  gathered_unit unit = std::move(units_.front());
  units_.pop_front();
  unit.force_listen |=
      forced_ || std::any_of(aside_.begin(), aside_.end(), [](const auto& of) { return of.force_listen; });
  forced_ = false;
  aside_.clear();
  unit.context.insert(unit.context.begin(), std::make_move_iterator(left_.begin()),
                      std::make_move_iterator(left_.end()));
  left_.clear();
  return unit;
}

std::size_t unit_backlog::context_bytes() const {
  std::size_t bytes = bytes_of(left_);
  for (const auto& unit : units_) bytes += bytes_of(unit.context);
  return bytes;
}

void unit_backlog::bring_back() {
  dropped_ -= static_cast<std::int64_t>(aside_.size());
  units_.insert(units_.begin(), std::make_move_iterator(aside_.begin()), std::make_move_iterator(aside_.end()));
  aside_.clear();
}

} // namespace parley::protocol
