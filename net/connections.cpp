#include "net/connections.hpp"

#include <utility>
#include <vector>

namespace parley::net {

connections::place::~place() {
  if (all_) all_->leave(id_);
}

void connections::place::move_to(const std::weak_ptr<connection>& owner) {
  bool cut = false;
  {
    const std::lock_guard lock(all_->mutex_);
    all_->all_[id_] = owner;
    cut = all_->cut_;
  }
  if (cut) {
    if (const auto now = owner.lock()) now->cut();
  }
}

std::optional<connections::place> connections::enter() {
  const std::lock_guard lock(mutex_);
  if (draining_ || all_.size() >= bound_) return std::nullopt;
  all_.emplace(++last_id_, std::weak_ptr<connection>());
  return std::make_optional<place>(*this, last_id_);
}

std::size_t connections::count() const {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

bool connections::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

void connections::close_door() {
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
  all_.erase(id);
  if (all_.empty()) empty_.notify_all();
}

} // namespace parley::net
