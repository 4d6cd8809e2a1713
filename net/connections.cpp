#include "net/connections.hpp"

#include "base/expect.hpp"

#include <utility>
#include <vector>

namespace parley::net {

connections::slot::~slot() {
  if (all_) all_->leave(id_);
}

void connections::slot::move_to(const std::weak_ptr<connection>& owner) {
  PARLEY_ASSERT(all_, "a slot that was given away is not used");
  bool cut = false;
  {
    const std::lock_guard lock(all_->mutex_);
    const auto mine = all_->all_.find(id_);
    PARLEY_ASSERT(mine != all_->all_.end(), "a slot is among those that are counted");
    mine->second = owner;
    cut = all_->cut_;
  }
  if (cut) {
    if (const auto now = owner.lock()) now->cut();
  }
}

std::optional<connections::slot> connections::enter() {
  const std::lock_guard lock(mutex_);
  if (draining_ || all_.size() >= bound_) return std::nullopt;
  all_.emplace(++last_id_, std::weak_ptr<connection>());
  return std::make_optional<slot>(*this, last_id_);
}

std::size_t connections::count() const {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

bool connections::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

void connections::close_entrance() {
  std::vector<std::weak_ptr<connection>> open;
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    for (const auto& [id, owner] : all_) open.push_back(owner);
  }
  for (const auto& owner : open) {
    if (const auto now = owner.lock()) now->drain();
  }
}

void connections::cut_all() {
  std::vector<std::weak_ptr<connection>> open;
  {
    const std::lock_guard lock(mutex_);
    cut_ = true;
    for (const auto& [id, owner] : all_) open.push_back(owner);
  }
  for (const auto& owner : open) {
    if (const auto now = owner.lock()) now->cut();
  }
}

bool connections::wait_empty(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return empty_.wait_until(lock, deadline, [this] { return all_.empty(); });
}

void connections::leave(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto gone = all_.erase(id);
  PARLEY_EXPECT(gone == 1, "a slot is counted until it is given back, once");
  if (all_.empty()) empty_.notify_all();
}

} // namespace parley::net
