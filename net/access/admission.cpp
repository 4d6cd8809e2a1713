#include "net/access/admission.hpp"

#include "base/expect.hpp"

#include <algorithm>
#include <utility>

namespace parley::net {
namespace {

constexpr double minute_s = 60;

/// The current content of the token bucket.
double refilled(double left, std::chrono::steady_clock::time_point since, std::chrono::steady_clock::time_point now,
                std::size_t per_minute) {
  const double passed = std::chrono::duration<double>(now - since).count();
  const auto most = static_cast<double>(per_minute);
  return std::min(most, left + std::max(0.0, passed) * most / minute_s);
}

} // namespace

admission::admission(admission_limits limits) : limits_(limits), ledger_(std::make_shared<ledger>()) {}

std::pair<admission::verdict, admission::reservation>
admission::enter(const std::string& address, const std::string& key, time_point now, bool returning, own_limits own) {
  const std::lock_guard lock(ledger_->mutex);
  struct check {
    client* who;
    std::size_t sessions;
    std::size_t starts;
  };
  const auto known = [now](clients& among, const std::string& name, std::size_t starts) {
    return &among.try_emplace(name, client{0, static_cast<double>(starts), now}).first->second;
  };
  forget_idle(now);
  const auto key_starts = own.starts > 0 ? own.starts : limits_.starts_per_key;
  const check by_address{known(ledger_->addresses, address, limits_.starts_per_address), limits_.sessions_per_address,
                         limits_.starts_per_address};
  const check by_key{key.empty() ? nullptr : known(ledger_->keys, key, key_starts),
                     own.sessions > 0 ? own.sessions : limits_.sessions_per_key, key_starts};
  for (const check& each : {by_address, by_key})
    if (!returning && each.who && each.sessions > 0 && each.who->sessions >= each.sessions)
      return {verdict::too_many_sessions, reservation()};
  for (const check& each : {by_address, by_key}) {
    if (!each.who || each.starts == 0) continue;
    each.who->starts_left = refilled(each.who->starts_left, each.who->counted_at, now, each.starts);
    each.who->counted_at = now;
    if (each.who->starts_left < 1) return {verdict::too_many_starts, reservation()};
  }
  for (const check& each : {by_address, by_key}) {
    if (!each.who) continue;
    if (!returning) ++each.who->sessions;
    if (each.starts > 0) each.who->starts_left -= 1;
  }
  return {verdict::welcome, returning ? reservation() : reservation(ledger_, address, key)};
}

/// Clients that are forgotten have all of their starts left.
class admission::starts final : public actors::start_limit {
public:
  starts(std::shared_ptr<ledger> in, admission_limits limits, std::string address, std::string key)
      : in_(std::move(in)), limits_(limits), address_(std::move(address)), key_(std::move(key)) {}

  bool left(time_point now) override {
    const std::lock_guard lock(in_->mutex);
    return of(in_->addresses, address_, limits_.starts_per_address, now, 0) &&
           (key_.empty() || of(in_->keys, key_, limits_.starts_per_key, now, 0));
  }

  void count(time_point now) override {
    const std::lock_guard lock(in_->mutex);
    of(in_->addresses, address_, limits_.starts_per_address, now, 1);
    if (!key_.empty()) of(in_->keys, key_, limits_.starts_per_key, now, 1);
  }

private:
  /// Takes `starts`; returns whether one is left.
  static bool of(clients& among, const std::string& name, std::size_t per_minute, time_point now, double starts) {
    if (per_minute == 0) return true;
    auto& who = among.try_emplace(name, client{0, static_cast<double>(per_minute), now}).first->second;
    who.starts_left = std::max(0.0, refilled(who.starts_left, who.counted_at, now, per_minute) - starts);
    who.counted_at = now;
    return who.starts_left >= 1;
  }

  const std::shared_ptr<ledger> in_;
  const admission_limits limits_;
  const std::string address_;
  const std::string key_;
};

std::shared_ptr<actors::start_limit> admission::starts_of(std::string address, std::string key, own_limits own) const {
  auto limits = limits_;
  if (own.starts > 0) limits.starts_per_key = own.starts;
  return std::make_shared<starts>(ledger_, limits, std::move(address), std::move(key));
}

admission::reservation::~reservation() {
  if (!of_) return;
  const std::lock_guard lock(of_->mutex);
  const auto give_back = [](auto& counted, const std::string& name) {
    const auto found = counted.find(name);
    const bool held = found != counted.end() && found->second.sessions > 0;
    PARLEY_EXPECT(held, "a session that ends was counted");
    if (held) --found->second.sessions;
  };
  give_back(of_->addresses, address_);
  if (!key_.empty()) give_back(of_->keys, key_);
}

void admission::forget_idle(time_point now) {
  if (ledger_->addresses.size() < ledger_->sweep_at) return;
  std::erase_if(ledger_->addresses, [&](const auto& each) {
    const client& of = each.second;
    const auto most = static_cast<double>(limits_.starts_per_address);
    return of.sessions == 0 && refilled(of.starts_left, of.counted_at, now, limits_.starts_per_address) >= most;
  });
  ledger_->sweep_at = std::max<std::size_t>(1024, 2 * ledger_->addresses.size());
}

std::size_t admission::remembered() const {
  const std::lock_guard lock(ledger_->mutex);
  return ledger_->addresses.size() + ledger_->keys.size();
}

} // namespace parley::net
