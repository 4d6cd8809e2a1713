#include "net/access/usage_ledger.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace parley::net {
namespace {

using std::chrono::days;
using std::chrono::sys_days;

constexpr std::string_view heading = "parley usage 1";

std::int64_t day_of(std::int64_t now) {
  return std::chrono::floor<days>(std::chrono::sys_seconds(std::chrono::seconds(now))).time_since_epoch().count();
}

std::int64_t month_of(std::int64_t now) {
  const std::chrono::year_month_day date{sys_days(days(day_of(now)))};
  return (static_cast<int>(date.year()) - 1970) * 12 + static_cast<unsigned>(date.month()) - 1;
}

std::int64_t begin_of_day(std::int64_t day) {
  return std::chrono::seconds(days(day)).count();
}

std::int64_t begin_of_month(std::int64_t month) {
  const auto date = std::chrono::year(1970) / std::chrono::January / 1 + std::chrono::months(month);
  return std::chrono::sys_seconds(sys_days(date)).time_since_epoch().count();
}

bool is_amount(const usage_ledger::amount& each) {
  return std::isfinite(each.seconds) && each.seconds >= 0 && each.tokens >= 0;
}

} // namespace

usage_ledger::record usage_ledger::as_of(record kept, std::int64_t now) {
  if (const auto day = day_of(now); day > kept.day) {
    kept.day = day;
    kept.today = {};
  }
  if (const auto month = month_of(now); month > kept.month) {
    kept.month = month;
    kept.this_month = {};
  }
  return kept;
}

void usage_ledger::charge(const std::string& key, amount more, std::int64_t now) {
  auto& kept = records_[key];
  kept = as_of(kept, now);
  for (auto* each : {&kept.today, &kept.this_month}) {
    each->seconds += std::max(0.0, more.seconds);
    each->tokens += std::max<std::int64_t>(0, more.tokens);
  }
}

std::vector<usage_ledger::standing> usage_ledger::standings(const std::string& key, const key_limits& limits,
                                                            std::int64_t now) const {
  const auto found = records_.find(key);
  const auto kept = as_of(found == records_.end() ? record() : found->second, now);
  std::vector<standing> all;
  for (std::size_t i = 0; i < quota_table.size(); ++i) {
    const auto& about = quota_table[i];
    const auto& used = about.monthly ? kept.this_month : kept.today;
    all.push_back({static_cast<quota>(i), static_cast<double>(limits.quotas[i]),
                   about.in_minutes ? used.seconds / 60 : static_cast<double>(used.tokens),
                   about.monthly ? begin_of_month(kept.month + 1) : begin_of_day(kept.day + 1)});
  }
  return all;
}

std::optional<usage_ledger::standing> usage_ledger::spent(const std::string& key, const key_limits& limits,
                                                          std::int64_t now) const {
  std::optional<standing> last;
  for (const auto& each : standings(key, limits, now))
    if (each.is_spent() && (!last || each.renews_at > last->renews_at)) last = each;
  return last;
}

std::string usage_ledger::written(std::int64_t now) const {
  std::ostringstream out;
  out << heading << '\n' << std::setprecision(15);
  for (const auto& [key, each] : records_) {
    const auto kept = as_of(each, now);
    if (kept.this_month.seconds <= 0 && kept.this_month.tokens == 0) continue;
    out << key << ' ' << kept.day << ' ' << kept.today.seconds << ' ' << kept.today.tokens << ' ' << kept.month << ' '
        << kept.this_month.seconds << ' ' << kept.this_month.tokens << '\n';
  }
  return out.str();
}

std::optional<usage_ledger> usage_ledger::read(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string line;
  if (!std::getline(in, line) || line != heading) return std::nullopt;
  usage_ledger out;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string key;
    record each;
    words >> key >> each.day >> each.today.seconds >> each.today.tokens >> each.month >> each.this_month.seconds >>
        each.this_month.tokens;
    std::string more;
    if (!words || words >> more || !is_amount(each.today) || !is_amount(each.this_month)) return std::nullopt;
    out.records_[key] = each;
  }
  return out;
}

} // namespace parley::net
