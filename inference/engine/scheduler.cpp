#include "inference/engine/scheduler.hpp"

#include <algorithm>
#include <tuple>

namespace parley::inference {

namespace {

/// A unit or a chat answer, which would be late if it waited; not a prompt.
bool is_under_way(const ready_session& r) {
  switch (r.at) {
  case stage::hear:
  case stage::decode:
  case stage::speak:
  case stage::sound: return true;
  case stage::prefill: return !r.divisible;
  default: return false;
  }
}

} // namespace

schedule schedule_pass(std::span<const ready_session> ready, const pass_limits& limits) {
  std::vector<ready_session> order(ready.begin(), ready.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tie(a.deadline, a.session) < std::tie(b.deadline, b.session);
  });
  schedule plan;
  const bool in_company = std::any_of(order.begin(), order.end(), is_under_way);
  auto prompt_rows = in_company ? std::min(limits.prompt_rows, limits.prompt_rows_beside) : limits.prompt_rows;
  auto pieces = limits.pieces;
  for (const auto& r : order) {
    switch (r.at) {
    case stage::idle:
    case stage::voice:
    case stage::same_prompt:
    case stage::look: break;
    case stage::hear:
      if (std::ssize(plan.hear) < limits.sounds) plan.hear.push_back(r.session);
      break;
    case stage::see:
      if (pieces > 0) plan.see.push_back({r.session, std::min(r.rows, pieces)});
      pieces -= std::min(r.rows, pieces);
      break;
    case stage::clips:
      if (!plan.clips) plan.clips = r.session;
      break;
    case stage::prefill: {
      auto rows = r.divisible ? std::min(r.rows, prompt_rows) : r.rows;
      if (r.divisible) prompt_rows -= rows;
      if (rows > 0) plan.prefill.push_back({r.session, rows});
      break;
    }
    case stage::decode: plan.decode.push_back(r.session); break;
    case stage::speak: plan.speak.push_back(r.session); break;
    case stage::sound:
      if (std::ssize(plan.sound) < limits.windows) plan.sound.push_back(r.session);
      break;
    }
  }
  return plan;
}

} // namespace parley::inference
