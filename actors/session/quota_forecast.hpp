#pragma once

#include "actors/gateway_api.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

namespace parley::actors {

/// How long a session can go on, once 90 % of one of its key's quotas is used; none = no quota is that low. Assumes that no
/// other session uses the key, and that this one goes on as it began, with `tokens` in `lasted`.
inline std::optional<std::chrono::milliseconds>
quota_forecast(std::span<const usage_account::left> rests, std::int64_t tokens, std::chrono::duration<double> lasted) {
  constexpr double most_seconds = 86'400;
  std::optional<double> least;
  for (const auto& each : rests) {
    if (each.rest > 0.1 * each.limit) continue;
    const double pace = each.in_seconds ? 1 : static_cast<double>(tokens) / std::max(lasted.count(), 1e-3);
    const double seconds = pace > 0 ? std::min(each.rest / pace, most_seconds) : most_seconds;
    least = std::min(least.value_or(seconds), seconds);
  }
  if (!least) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*least * 1000));
}

} // namespace parley::actors
