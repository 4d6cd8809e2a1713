#include "client/load_scenario.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace parley::client {

std::vector<load_scenario> cast_roles(int sessions, std::span<const protocol::mode> modes, bool mixed_dialects,
                                      double ramp, std::uint64_t seed) {
  std::mt19937_64 chance(seed);
  std::vector<load_scenario> roles;
  for (int i = 0; i < sessions; ++i) {
    const auto n = static_cast<std::size_t>(i);
    load_scenario role;
    role.mode = modes[n % modes.size()];
    const bool legacy = mixed_dialects && role.mode != protocol::mode::chat && n / modes.size() % 2 == 1;
    role.spoken = legacy ? protocol::dialect::legacy : protocol::dialect::current;
    role.start = ramp * i / sessions;
    role.seed = chance();
    roles.push_back(role);
  }
  return roles;
}

std::size_t load_script::silent_unit() const {
  return std::accumulate(recordings.begin(), recordings.end(), std::size_t{0});
}

load_pace::load_pace(const load_script& script, const load_habits& habits, std::uint64_t seed)
    : script_(&script), habits_(&habits), chance_(seed) {}

std::size_t load_pace::next_unit() {
  if (left_ == 0 && silent_left_ == 0) {
    const auto& all = script_->recordings;
    const auto which = static_cast<std::size_t>(uniform() * static_cast<double>(all.size()));
    unit_ = std::accumulate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(which), std::size_t{0});
    left_ = all[which];
    silent_left_ = static_cast<std::size_t>(std::lround(-habits_->pause * std::log(1 - uniform())));
  }
  if (left_ > 0) {
    --left_;
    return unit_++;
  }
  --silent_left_;
  return script_->silent_unit();
}

double load_pace::due(std::size_t number, double step) {
  const auto place = static_cast<double>(number) * step;
  return number == 0 ? 0 : place + std::min(habits_->jitter, 0.49 * step) * (2 * uniform() - 1);
}

double load_pace::thinking_time() {
  return -habits_->think * std::log(1 - uniform());
}

bool load_pace::interrupts() {
  return uniform() < habits_->barge_in;
}

bool load_pace::tells_to_listen() {
  constexpr double both = 10; // seconds
  const auto share = habits_->listening;
  if (share <= 0) return false;
  if (share >= 1) return true;
  if (!std::exchange(begun_, true)) return listening_ = uniform() < share;
  const auto stretch = std::max(1.0, both * (listening_ ? share : 1 - share));
  if (uniform() < 1 / stretch) listening_ = !listening_;
  return listening_;
}

double load_pace::uniform() {
  return static_cast<double>(chance_() >> 11) * 0x1.0p-53;
}

} // namespace parley::client
