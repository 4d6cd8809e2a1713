#pragma once

#include "net/access/key_limits.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parley::net {

/// What each key has used in this day and this month, which begin at midnight UTC. Time is an argument, in seconds of Unix
/// time; a clock that is set back renews nothing. Not thread-safe.
class usage_ledger {
public:
  struct amount {
    double seconds = 0;
    std::int64_t tokens = 0;
  };

  /// How a key stands with one of its quotas.
  struct standing {
    quota what = quota::minutes_per_day;
    double limit = 0; ///< in minutes or tokens; 0 = none
    double used = 0;
    std::int64_t renews_at = 0;

    bool is_spent() const { return limit > 0 && used >= limit; }
    bool is_nearly_spent() const { return limit > 0 && used >= 0.9 * limit; }
  };

  void charge(const std::string& key, amount more, std::int64_t now);

  /// Of all quotas, in their order.
  std::vector<standing> standings(const std::string& key, const key_limits& limits, std::int64_t now) const;

  /// The spent quota that is renewed last; none = the key may use more.
  std::optional<standing> spent(const std::string& key, const key_limits& limits, std::int64_t now) const;

  /// As text, for `read`, without what counts no more.
  std::string written(std::int64_t now) const;

  /// Nothing if the text is not one of `written`.
  static std::optional<usage_ledger> read(std::string_view text);

private:
  /// Periods are numbered from 1970 on.
  struct record {
    std::int64_t day = 0;
    amount today;
    std::int64_t month = 0;
    amount this_month;
  };

  static record as_of(record kept, std::int64_t now);

  std::map<std::string, record, std::less<>> records_;
};

} // namespace parley::net
