#include "net/access/key_usage.hpp"

#include "base/file_writes.hpp"
#include "base/read_file.hpp"
#include "config/load.hpp"
#include "net/logger.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

namespace parley::net {
namespace {

constexpr std::chrono::seconds between_writes{2};

usage_ledger read_file(const std::filesystem::path& file) {
  std::error_code problem;
  if (file.empty() || !std::filesystem::exists(file, problem)) return {};
  const auto text = base::read_file(file);
  auto ledger = text ? usage_ledger::read(*text) : std::nullopt;
  if (!ledger)
    throw config::settings_error("journal.dir: " + file.string() +
                                 " does not say what keys have used; without it, counting begins again");
  return std::move(*ledger);
}

} // namespace

std::string utc_time(std::int64_t unix_s) {
  const std::chrono::sys_seconds when{std::chrono::seconds(unix_s)};
  const auto day = std::chrono::floor<std::chrono::days>(when);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(when - day);
  char text[32];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text;
}

std::string words_for(const usage_ledger::standing& spent) {
  const auto& about = traits(spent.what);
  return "the " + std::to_string(static_cast<std::int64_t>(spent.limit)) +
         (about.in_minutes ? " minutes of this " : " tokens of this ") + (about.monthly ? "month" : "day") +
         " are used up; renewed at " + utc_time(spent.renews_at);
}

struct key_usage::state {
  mutable std::mutex mutex;
  usage_ledger ledger;
  limits_by_key limits;
  bool changed = false;

  key_limits limits_of(const std::string& key) const {
    const auto found = limits.find(key);
    return found == limits.end() ? key_limits() : found->second;
  }
};

class key_usage::account final : public actors::usage_account {
public:
  account(std::shared_ptr<state> of, unix_clock clock, std::string key)
      : of_(std::move(of)), clock_(std::move(clock)), key_(std::move(key)) {}

  void charge(double seconds, std::int64_t tokens) override {
    const auto now = clock_();
    const std::lock_guard lock(of_->mutex);
    const auto limits = of_->limits_of(key_);
    const auto before = of_->ledger.standings(key_, limits, now);
    of_->ledger.charge(key_, {seconds, tokens}, now);
    of_->changed = true;
    const auto after = of_->ledger.standings(key_, limits, now);
    for (std::size_t i = 0; i < after.size(); ++i) tell(before[i], after[i]);
  }

  std::optional<std::string> spent() const override {
    const auto now = clock_();
    const std::lock_guard lock(of_->mutex);
    const auto found = of_->ledger.spent(key_, of_->limits_of(key_), now);
    return found ? std::optional(words_for(*found)) : std::nullopt;
  }

  std::vector<left> rests() const override {
    const auto now = clock_();
    const std::lock_guard lock(of_->mutex);
    std::vector<left> all;
    for (const auto& each : of_->ledger.standings(key_, of_->limits_of(key_), now)) {
      if (each.limit <= 0) continue;
      const bool in_seconds = traits(each.what).in_minutes;
      const double unit = in_seconds ? 60 : 1;
      all.push_back({in_seconds, each.limit * unit, std::max(each.limit - each.used, 0.0) * unit,
                     std::chrono::seconds(std::max<std::int64_t>(each.renews_at - now, 0))});
    }
    return all;
  }

private:
  void tell(const usage_ledger::standing& before, const usage_ledger::standing& after) const {
    const auto name = traits(after.what).name;
    if (after.is_spent() && !before.is_spent())
      log()->warn("key {} has used up its {} ({:.0f}), until {}", key_, name, after.limit, utc_time(after.renews_at));
    else if (after.is_nearly_spent() && !before.is_nearly_spent())
      log()->warn("key {} has used 90 % of its {} ({:.0f}), until {}", key_, name, after.limit,
                  utc_time(after.renews_at));
  }

  const std::shared_ptr<state> of_;
  const unix_clock clock_;
  const std::string key_;
};

key_usage::unix_clock key_usage::system_clock() {
  return [] {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
}

key_usage::key_usage(std::filesystem::path file, unix_clock clock)
    : file_(std::move(file)), clock_(std::move(clock)), state_(std::make_shared<state>()) {
  state_->ledger = read_file(file_);
  if (!file_.empty()) writer_ = std::thread([this] { write_until_end(); });
}

key_usage::~key_usage() {
  if (!writer_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ends_.notify_all();
  writer_.join();
}

void key_usage::write_until_end() {
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, between_writes, [this] { return ending_; })) write();
  write();
}

void key_usage::write() noexcept {
  try {
    std::string text;
    {
      const std::lock_guard lock(state_->mutex);
      if (!std::exchange(state_->changed, false)) return;
      text = state_->ledger.written(clock_());
    }
    base::replace_file(file_, text, true);
  } catch (const std::exception& problem) {
    const std::lock_guard lock(state_->mutex);
    state_->changed = true;
    try {
      log()->error("what keys have used is not kept: {}", problem.what());
    } catch (...) {
      std::fputs("what keys have used is not kept\n", stderr);
    }
  }
}

void key_usage::set_limits(limits_by_key limits) {
  const std::lock_guard lock(state_->mutex);
  state_->limits = std::move(limits);
}

key_limits key_usage::limits_of(const std::string& key) const {
  const std::lock_guard lock(state_->mutex);
  return state_->limits_of(key);
}

std::shared_ptr<actors::usage_account> key_usage::account_of(const std::string& key) const {
  return key.empty() ? nullptr : std::make_shared<account>(state_, clock_, key);
}

std::optional<usage_ledger::standing> key_usage::spent(const std::string& key) const {
  const auto now = clock_();
  const std::lock_guard lock(state_->mutex);
  return state_->ledger.spent(key, state_->limits_of(key), now);
}

key_usage::holder key_usage::of(const std::string& key) const {
  const auto now = clock_();
  const std::lock_guard lock(state_->mutex);
  return {key, state_->ledger.standings(key, state_->limits_of(key), now)};
}

std::vector<key_usage::holder> key_usage::all() const {
  const auto now = clock_();
  const std::lock_guard lock(state_->mutex);
  std::vector<holder> out;
  for (const auto& [key, limits] : state_->limits)
    if (limits != key_limits()) out.push_back({key, state_->ledger.standings(key, limits, now)});
  return out;
}

} // namespace parley::net
