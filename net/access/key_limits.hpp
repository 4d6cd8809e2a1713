#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace parley::net {

/// What is counted for a key over a day or a month.
enum class quota : std::uint8_t { minutes_per_day, minutes_per_month, tokens_per_day, tokens_per_month };

struct quota_traits {
  std::string_view name; ///< in the keys file, metrics and answers
  bool monthly;          ///< else daily
  bool in_minutes;       ///< else in tokens
};

/// In the order of `quota`.
inline constexpr std::array<quota_traits, 4> quota_table{{
    {"minutes_per_day", false, true},
    {"minutes_per_month", true, true},
    {"tokens_per_day", false, false},
    {"tokens_per_month", true, false},
}};

constexpr const quota_traits& traits(quota what) {
  return quota_table[static_cast<std::size_t>(what)];
}

/// The limits of one key. Minutes are those in which its sessions hold a slot, tokens those that are read and made.
struct key_limits {
  std::array<std::int64_t, quota_table.size()> quotas{}; ///< in the order of `quota`; 0 = no limit
  std::int64_t sessions = 0;                             ///< open at once; 0 = limits.sessions_per_key
  std::int64_t starts_per_minute = 0;                    ///< 0 = limits.starts_per_key

  bool operator==(const key_limits&) const = default;
};

} // namespace parley::net
