#include "actors/log/copy_schedule.hpp"

#include <algorithm>

namespace parley::actors {

void copy_schedule::enqueue(const std::string& session_id, log& what) {
  if (what.waits || what.sent == what.size) return;
  what.waits = true;
  turns_.push_back(session_id);
}

void copy_schedule::begin(const session_name& session, std::uint64_t epoch) {
  end(session.id);
  logs_[session.id] = {session.birth, epoch};
}

void copy_schedule::grew(const std::string& session_id, std::size_t to) {
  const auto found = logs_.find(session_id);
  if (found == logs_.end()) return;
  unsent_ += to - found->second.size;
  found->second.size = to;
  enqueue(session_id, found->second);
}

bool copy_schedule::end(const std::string& session_id) {
  const auto found = logs_.find(session_id);
  if (found == logs_.end()) return false;
  unsent_ -= found->second.size - found->second.sent;
  if (found->second.waits) std::erase(turns_, session_id);
  logs_.erase(found);
  return true;
}

void copy_schedule::link_up() {
  link_down();
  up_ = true;
}

void copy_schedule::link_down() {
  up_ = false;
  unconfirmed_ = 0;
  for (auto& [id, each] : logs_) {
    unsent_ += each.sent;
    each.sent = 0;
    enqueue(id, each);
  }
}

std::optional<copy_schedule::part> copy_schedule::next() {
  if (!up_ || turns_.empty() || unconfirmed_ >= most_unconfirmed_) return std::nullopt;
  const auto id = turns_.front();
  turns_.pop_front();
  auto& from = logs_.at(id);
  const auto bytes = std::min({from.size - from.sent, largest_part_, most_unconfirmed_ - unconfirmed_});
  part chosen{id, from.birth, from.epoch, from.sent, bytes};
  from.sent += bytes;
  unconfirmed_ += bytes;
  unsent_ -= bytes;
  from.waits = false;
  enqueue(id, from);
  return chosen;
}

std::size_t copy_schedule::complete() const {
  if (!up_) return 0;
  return static_cast<std::size_t>(
      std::count_if(logs_.begin(), logs_.end(), [](const auto& each) { return each.second.sent == each.second.size; }));
}

} // namespace parley::actors
