#include "inference/engine/background_share.hpp"

#include <algorithm>

namespace parley::inference {

namespace {

using duration = background_share::duration;

std::size_t index(stage at) {
  return static_cast<std::size_t>(at);
}

std::int64_t rows_in(std::span<const planned_work> parts) {
  auto rows = std::int64_t{0};
  for (const auto& each : parts) rows += each.rows;
  return rows;
}

/// A moving average, in which the newest value has a weight of one in four.
duration blend(std::optional<duration> before, duration now) {
  return before ? (*before * 3 + now) / 4 : now;
}

} // namespace

duration background_share::allowance(bool units, duration has_spare, time_point now) const {
  if (!units) return step_alone;
  if (now - last_ran_ >= longest_wait) return step_beside;
  return now >= resume_ && has_spare >= spare ? duration(step_beside) : duration(0);
}

duration background_share::allowance_of_moved(time_point now) const {
  const bool owed = pressed_ && now - *pressed_ >= longest_wait && now >= resume_;
  return owed ? duration(step_beside) : duration(0);
}

std::optional<duration> background_share::cost(stage at) const {
  return costs_[index(at)];
}

duration background_share::served(session_id who) const {
  const auto found = served_.find(who);
  return found == served_.end() ? floor_ : std::max(found->second, floor_);
}

/// Of stages in one call, the one with the most rows is held responsible for what a row costs.
void background_share::ran(std::span<const planned_work> all, std::span<const planned_work> paid, duration took) {
  const auto rows = rows_in(all);
  if (rows == 0) return;
  std::array<std::int64_t, stages> by_stage{};
  for (const auto& each : all) by_stage[index(each.at)] += each.rows;
  auto& cost = costs_[static_cast<std::size_t>(std::ranges::max_element(by_stage) - by_stage.begin())];
  cost = blend(cost, took / rows);
  for (const auto& each : paid) {
    const auto part = took * each.rows / rows;
    served_[each.session] = served(each.session) + part;
    taken_ += part;
  }
}

void background_share::pass_over(std::span<const session_id> owners, due_units units, time_point begin,
                                 time_point now) {
  if (units != due_units::pressed)
    pressed_.reset();
  else if (!pressed_)
    pressed_ = begin;
  if (units != due_units::none) unit_pass_ = blend(unit_pass_, now - begin - taken_);
  if (taken_ > duration(0)) resume_ = now + pause * taken_;
  if (taken_ > duration(0) || owners.empty()) last_ran_ = now;
  taken_ = duration(0);
  if (owners.empty()) return;
  auto least = duration::max();
  for (const auto who : owners) least = std::min(least, served(who));
  floor_ = std::max(floor_, least);
}

} // namespace parley::inference
