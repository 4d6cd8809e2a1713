#include "net/connections.hpp"

#include "base/expect.hpp"
#include "net/logger.hpp"

#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

namespace parley::net {

namespace {

/// So many connections more than the bound may be open for the moment that dropped ones take to close.
constexpr std::size_t most_leaving = 64;

/// What is being handled, in words.
std::string current_failure() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an unknown exception";
  }
}

} // namespace

void connection_owner::set(const std::weak_ptr<connection>& owner) {
  const std::lock_guard lock(mutex_);
  owner_ = owner;
}

std::shared_ptr<connection> connection_owner::get() const {
  const std::lock_guard lock(mutex_);
  return owner_.lock();
}

void connection_owner::failed() const noexcept {
  static base::log_throttle throttle{std::chrono::minutes(1)};
  try {
    if (const auto more = throttle.pass(std::chrono::steady_clock::now()))
      log()->error("a connection failed and is cut: {} ({} more in the last minute)", current_failure(), *more);
    if (const auto now = get()) now->cut();
  } catch (...) { // out of memory: its deadlines end the connection
    std::fputs("a connection failed and could not be cut\n", stderr);
  }
}

connections::slot::~slot() {
  if (all_) all_->leave(id_);
}

void connections::slot::move_to(const std::weak_ptr<connection>& owner) {
  PARLEY_ASSERT(all_, "a slot that was given away is not used");
  all_->change_owner(id_, owner, false);
}

void connections::slot::move_to_session(const std::weak_ptr<connection>& owner) {
  PARLEY_ASSERT(all_, "a slot that was given away is not used");
  all_->change_owner(id_, owner, true);
}

void connections::change_owner(std::uint64_t id, const std::weak_ptr<connection>& owner, bool has_session) {
  bool cut = false;
  {
    const std::lock_guard lock(mutex_);
    const auto mine = all_.find(id);
    PARLEY_ASSERT(mine != all_.end(), "a slot is among those that are counted");
    mine->second.owner->set(owner);
    if (has_session) {
      droppable_.remove(id);
      if (std::exchange(mine->second.dropped, false)) --leaving_;
    } else if (std::exchange(mine->second.has_session, has_session)) {
      droppable_.add(id, mine->second.client);
    }
    mine->second.has_session = has_session;
    cut = cut_ || mine->second.dropped;
  }
  if (cut) {
    if (const auto now = owner.lock()) now->cut();
  }
}

std::optional<connections::slot> connections::enter(const std::string& client,
                                                    std::shared_ptr<connection_owner> owner) {
  std::shared_ptr<connection> dropped;
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (draining_ || !make_room(dropped)) return std::nullopt;
    id = ++last_id_;
    droppable_.add(id, client);
    all_.emplace(id, place{std::move(owner), client});
  }
  if (dropped) {
    dropped->cut();
    if (const auto more = crowded_.pass(std::chrono::steady_clock::now()))
      log()->warn("limits.connections is reached: the oldest connections without a session are dropped, {} more in the "
                  "last minute",
                  *more);
  }
  return std::make_optional<slot>(*this, id);
}

bool connections::make_room(std::shared_ptr<connection>& dropped) {
  if (all_.size() < bound_) return true;
  const auto whom = droppable_.whom_to_drop();
  if (!whom || leaving_ >= most_leaving) return false;
  droppable_.remove(*whom);
  place& its = all_.at(*whom);
  its.dropped = true;
  ++leaving_;
  dropped = its.owner->get();
  return true;
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
  std::vector<std::shared_ptr<connection>> open;
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    for (const auto& [id, each] : all_) open.push_back(each.owner->get());
  }
  for (const auto& now : open) {
    if (now) now->drain();
  }
}

void connections::cut_all() {
  std::vector<std::shared_ptr<connection>> open;
  {
    const std::lock_guard lock(mutex_);
    cut_ = true;
    for (const auto& [id, each] : all_) open.push_back(each.owner->get());
  }
  for (const auto& now : open) {
    if (now) now->cut();
  }
}

bool connections::wait_empty(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return empty_.wait_until(lock, deadline, [this] { return all_.empty(); });
}

void connections::leave(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto mine = all_.find(id);
  PARLEY_EXPECT(mine != all_.end(), "a slot is counted until it is given back, once");
  if (mine == all_.end()) return;
  if (mine->second.dropped) --leaving_;
  droppable_.remove(id);
  all_.erase(mine);
  if (all_.empty()) empty_.notify_all();
}

} // namespace parley::net
