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

/// Whether all sessions at this stage should rather wait for company: none of them has waited for `patience` since its
/// unit arrived, and there is work for other sessions.
bool gathers(std::span<const ready_session> ready, stage at, std::chrono::milliseconds patience,
             std::chrono::steady_clock::time_point now) {
  if (patience.count() == 0) return false;
  constexpr std::chrono::seconds from_arrival_to_deadline{1};
  const auto in_time = [&](const ready_session& r) {
    return r.at != at || now - patience < r.deadline - from_arrival_to_deadline;
  };
  const auto works_meanwhile = [&](const ready_session& other) {
    return other.at != at && is_under_way(other) && std::none_of(ready.begin(), ready.end(), [&](const auto& r) {
             return r.at == at && r.session == other.session;
           });
  };
  return std::all_of(ready.begin(), ready.end(), in_time) && std::any_of(ready.begin(), ready.end(), works_meanwhile);
}

} // namespace

pass_limits accelerator_limits() {
  pass_limits limits;
  limits.windows = 64;
  limits.speech_steps = 4; // a second has 25: one a pass would be a chain of 25 passes, each as long as its slowest stage
  limits.gather_sounds = std::chrono::milliseconds(30);
  limits.gather_windows = std::chrono::milliseconds(550);
  return limits;
}

schedule schedule_pass(std::span<const ready_session> ready, const pass_limits& limits,
                       std::chrono::steady_clock::time_point now,
                       std::chrono::steady_clock::time_point windows_from) {
  std::vector<ready_session> order(ready.begin(), ready.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tie(a.deadline, a.session) < std::tie(b.deadline, b.session);
  });
  schedule plan;
  const bool in_company = std::any_of(order.begin(), order.end(), is_under_way);
  auto prompt_rows = in_company ? std::min(limits.prompt_rows, limits.prompt_rows_beside) : limits.prompt_rows;
  auto pieces = limits.pieces;
  const bool sounds_wait = gathers(ready, stage::hear, limits.gather_sounds, now);
  const bool windows_wait = now < windows_from && gathers(ready, stage::sound, limits.gather_windows, now);
  for (const auto& r : order) {
    switch (r.at) {
    case stage::idle:
    case stage::voice:
    case stage::same_prompt:
    case stage::look: break;
    case stage::hear:
      if (!sounds_wait && std::ssize(plan.hear) < limits.sounds) plan.hear.push_back(r.session);
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
      if (!windows_wait && std::ssize(plan.sound) < limits.windows) plan.sound.push_back(r.session);
      break;
    }
  }
  return plan;
}

} // namespace parley::inference
