#include "actors/session_registry.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace parley::actors {

namespace {

/// How many ids of closed sessions are remembered, for operators who close a session that is closed already.
constexpr std::size_t max_past_ids = 20'000;

} // namespace

std::unique_ptr<session_registry::entry> session_registry::add(session_actor session, session_owner whose) {
  const std::lock_guard lock(mutex_);
  const auto number = ++last_number_;
  auto& fresh = records_[number];
  fresh.session = std::move(session);
  fresh.whose = std::move(whose);
  ++live_;
  return std::make_unique<entry>(*this, number);
}

std::optional<std::string> session_registry::claim(std::uint64_t number, const std::string& id,
                                                   const std::function<std::string()>& next_legacy) {
  const std::lock_guard lock(mutex_);
  if (live_ids_.contains(id)) return std::nullopt;
  std::string legacy_id = next_legacy();
  while (live_ids_.contains(legacy_id)) legacy_id = next_legacy();
  auto& ids = at(number).ids;
  PARLEY_ASSERT(ids.empty(), "a session claims its ids once");
  ids = {id, legacy_id};
  for (const auto& each : ids) live_ids_[each] = number;
  return legacy_id;
}

void session_registry::update(std::uint64_t number, protocol::mode kind, protocol::session_state state) {
  const std::lock_guard lock(mutex_);
  auto& of = at(number);
  of.kind = kind;
  if (of.state == state) return;
  PARLEY_ASSERT(of.state != protocol::session_state::closed, "a session that is over stays over");
  of.state = state;
  if (state == protocol::session_state::closed) retire(of);
}

std::optional<session_actor> session_registry::offer(const std::string& id, const std::string& key,
                                                     std::shared_ptr<resume_request> link) {
  const std::lock_guard lock(mutex_);
  const auto found = live_ids_.find(id);
  if (found == live_ids_.end()) return {};
  auto& of = at(found->second);
  if (of.whose.key != key || !of.takes_offers) return {};
  of.offers.push_back(std::move(link));
  return of.session;
}

void session_registry::offer_came(std::uint64_t number, const resume_request& offer) {
  const std::lock_guard lock(mutex_);
  std::erase_if(at(number).offers, [&](const auto& each) { return each.get() == &offer; });
}

std::vector<std::shared_ptr<resume_request>> session_registry::refuse_offers(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  auto& of = at(number);
  of.takes_offers = false;
  return std::exchange(of.offers, {});
}

session_registry::record& session_registry::at(std::uint64_t number) {
  const auto found = records_.find(number);
  PARLEY_ASSERT(found != records_.end(), "an entry has a record");
  return found->second;
}

void session_registry::remove(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(number);
  if (found == records_.end()) return;
  if (found->second.state != protocol::session_state::closed) retire(found->second);
  records_.erase(found);
}

void session_registry::retire(record& of) {
  for (auto& id : of.ids) {
    live_ids_.erase(id);
    if (past_ids_.insert_or_assign(id, of.whose.key).second) past_order_.push_back(std::move(id));
  }
  of.ids.clear();
  for (; past_order_.size() > max_past_ids; past_order_.pop_front()) past_ids_.erase(past_order_.front());
  if (--live_ == 0) none_lives_.notify_all();
}

session_registry::lookup session_registry::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = live_ids_.find(id); found != live_ids_.end()) {
    const auto& of = records_.at(found->second);
    return {true, of.whose.key, of.session};
  }
  if (const auto found = past_ids_.find(id); found != past_ids_.end()) return {true, found->second, {}};
  return {};
}

std::vector<session_registry::view> session_registry::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<view> views;
  for (const auto& [number, of] : records_)
    if (!of.ids.empty()) views.push_back({of.ids.front(), of.kind, of.state, of.whose});
  return views;
}

std::vector<session_actor> session_registry::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<session_actor> sessions;
  sessions.reserve(records_.size());
  for (const auto& [number, of] : records_) sessions.push_back(of.session);
  return sessions;
}

std::vector<session_actor> session_registry::of_key(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  std::vector<session_actor> sessions;
  for (const auto& [number, of] : records_)
    if (of.whose.key == key) sessions.push_back(of.session);
  return sessions;
}

std::vector<session_registry::count> session_registry::counts() const {
  const std::lock_guard lock(mutex_);
  std::map<std::pair<protocol::mode, protocol::session_state>, int> found;
  for (const auto& [number, of] : records_)
    if (of.state != protocol::session_state::closed) ++found[{of.kind, of.state}];
  std::vector<count> counts;
  counts.reserve(found.size());
  for (const auto& [what, sessions] : found) counts.push_back({what.first, what.second, sessions});
  return counts;
}

std::size_t session_registry::live() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

bool session_registry::wait_until_none_lives(std::chrono::milliseconds most) const {
  std::unique_lock lock(mutex_);
  return none_lives_.wait_for(lock, most, [&] { return live_ == 0; });
}

} // namespace parley::actors
