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
/// unit arrived, and units of other sessions are under way. What has a share of the time is no company: it may go on for
/// minutes.
bool gathers(std::span<const ready_session> ready, stage at, std::chrono::milliseconds patience,
             std::chrono::steady_clock::time_point now) {
  if (patience.count() == 0) return false;
  constexpr std::chrono::seconds from_arrival_to_deadline{1};
  const auto in_time = [&](const ready_session& r) {
    return r.at != at || now - patience < r.deadline - from_arrival_to_deadline;
  };
  const auto works_meanwhile = [&](const ready_session& other) {
    return other.at != at && !other.background && is_under_way(other) &&
           std::none_of(ready.begin(), ready.end(),
                        [&](const auto& r) { return r.at == at && r.session == other.session; });
  };
  return std::all_of(ready.begin(), ready.end(), in_time) && std::any_of(ready.begin(), ready.end(), works_meanwhile);
}

} // namespace

pass_limits accelerator_limits() {
  pass_limits limits;
  limits.windows = 64;
  // A stage's call for one takes almost as long as for many, so a pass that runs all stages, each for a few sessions, is
  // long, and a unit needs about ten passes. Units that begin together go through the stages together: those that arrive
  // meanwhile wait until they are done. bench/gpu/passes.cpp simulates it.
  limits.gather_sounds = std::chrono::milliseconds(300);
  limits.speech_steps = 26; // all of a unit
  limits.window_rest = 2;
  limits.gather_windows = std::chrono::milliseconds(550);
  return limits;
}

namespace {

/// Builds the schedule of one pass.
class schedule_builder {
public:
  schedule_builder(std::span<const ready_session> ready, const pass_limits& limits,
                   std::chrono::steady_clock::time_point now, const background_share* share,
                   std::chrono::steady_clock::time_point windows_from)
      : limits_(limits), share_(share), sounds_wait_(gathers(ready, stage::hear, limits.gather_sounds, now)),
        windows_wait_(now < windows_from && gathers(ready, stage::sound, limits.gather_windows, now)),
        pieces_(limits.pieces) {
    std::vector<ready_session> order(ready.begin(), ready.end());
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return std::tie(a.deadline, a.session) < std::tie(b.deadline, b.session);
    });
    const auto ahead = [&](const ready_session& r) {
      return !r.background && r.deadline - std::chrono::seconds(1) - unit_jitter > now;
    };
    const auto others = std::ranges::any_of(order, [&](const auto& r) { return has_work(r) && !ahead(r); });
    if (others) std::erase_if(order, ahead);
    const bool in_company = std::ranges::any_of(order, is_under_way);
    prompt_rows_ = in_company && !share ? std::min(limits.prompt_rows, limits.prompt_rows_beside) : limits.prompt_rows;
    if (!share_) {
      for (const auto& r : order) add(r, r.rows);
      return;
    }
    auto has_spare = std::chrono::steady_clock::duration::max();
    for (const auto& r : order) {
      if (is_paid(r) || !has_work(r)) continue;
      if (add(r, r.rows) == 0 && r.at != stage::prefill) continue;
      plan_.units = due_units::in_time;
      has_spare = std::min(has_spare, r.deadline - now - r.steps_left * share_->unit_pass());
    }
    const bool units = plan_.units == due_units::in_time;
    if (units && has_spare < background_share::spare) plan_.units = due_units::pressed;
    auto left = share_->allowance(units, has_spare, now);
    const bool for_moved = left <= left.zero();
    if (for_moved) left = share_->allowance_of_moved(now);
    std::erase_if(order, [&](const auto& r) { return !is_paid(r); });
    add_paid(order, left, for_moved);
  }

  schedule take() { return std::move(plan_); }

private:
  static bool has_work(const ready_session& r) {
    return r.at != stage::idle && r.at != stage::voice && r.at != stage::same_prompt && r.at != stage::look &&
           r.at != stage::read;
  }

  /// Whether it takes of the share of time: everything but the indivisible work of a unit.
  static bool is_paid(const ready_session& r) {
    return has_work(r) && (r.background || r.at == stage::see || r.at == stage::slide || r.at == stage::clips ||
                           (r.at == stage::prefill && r.divisible));
  }

  /// What belongs to units comes first, then who had least; nobody gets much more than another who is ready. Whose next
  /// part has no room gets nothing in this pass, so that its turn comes.
  /// `for_moved`: of the background only moved sessions may take any.
  void add_paid(std::vector<ready_session>& order, std::chrono::steady_clock::duration left, bool for_moved) {
    std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
      if (a.background != b.background) return b.background;
      if (!a.background) return false;
      // Of one session, sound comes before further words, so that it is heard early.
      const auto key = [&](const ready_session& r) {
        return std::tuple(share_->served(r.session), r.session, -static_cast<int>(r.at));
      };
      return key(a) < key(b);
    });
    auto least = std::chrono::steady_clock::duration::max();
    for (const auto& r : order) {
      plan_.owners.push_back(r.session);
      if (!for_moved || r.moved) least = std::min(least, share_->served(r.session));
    }
    std::vector<session_id> turned_away;
    for (const auto& r : order) {
      if (left <= left.zero()) return;
      if (for_moved && !r.moved) continue;
      if (std::ranges::find(turned_away, r.session) != turned_away.end()) continue;
      if (share_->served(r.session) - least > background_share::quantum) continue;
      const auto cost = share_->cost(r.at);
      const auto whole = is_whole(r) ? std::max(r.rows, std::int64_t{1}) : 1;
      const auto fit = !cost ? whole : *cost > left.zero() ? left / *cost : r.rows; // what never ran is tried
      if (fit < whole && !plan_.paid.empty()) {
        turned_away.push_back(r.session);
        continue;
      }
      const auto taken = add(r, std::clamp(fit, whole, std::max(r.rows, whole)));
      if (taken == 0) continue;
      plan_.paid.push_back({r.session, r.at, taken});
      left = cost ? left - taken * *cost : left.zero();
    }
  }

  /// Whether it can't be divided.
  static bool is_whole(const ready_session& r) {
    return r.at != stage::see && r.at != stage::slide && !(r.at == stage::prefill && r.divisible);
  }

  /// Adds up to that many rows, as far as the pass has room. Returns how many.
  std::int64_t add(const ready_session& r, std::int64_t rows) {
    auto list = [&](std::vector<session_id>& into, bool may) {
      if (may) into.push_back(r.session);
      return std::int64_t{may};
    };
    switch (r.at) {
    case stage::idle:
    case stage::voice:
    case stage::same_prompt:
    case stage::look:
    case stage::read: return 0;
    case stage::hear: return list(plan_.hear, !sounds_wait_ && std::ssize(plan_.hear) < limits_.sounds);
    case stage::see: return add_pieces(plan_.see, r, std::min(rows, pieces_), pieces_);
    case stage::clips:
      if (plan_.clips) return 0;
      plan_.clips = r.session;
      return 1;
    case stage::slide: plan_.slide.push_back({r.session, rows}); return rows;
    case stage::prefill:
      if (r.divisible) return add_pieces(plan_.prefill, r, std::min(rows, prompt_rows_), prompt_rows_);
      plan_.prefill.push_back({r.session, r.rows});
      return r.rows;
    case stage::decode: return list(plan_.decode, true);
    case stage::speak: return list(plan_.speak, true);
    case stage::sound: return list(plan_.sound, !windows_wait_ && std::ssize(plan_.sound) < limits_.windows);
    }
    return 0;
  }

  static std::int64_t add_pieces(std::vector<schedule::piece>& into, const ready_session& r, std::int64_t rows,
                                 std::int64_t& room) {
    if (rows > 0) into.push_back({r.session, rows});
    room -= rows;
    return rows;
  }

  const pass_limits& limits_;
  const background_share* share_;
  const bool sounds_wait_, windows_wait_;
  std::int64_t pieces_, prompt_rows_ = 0;
  schedule plan_;
};

} // namespace

schedule schedule_pass(std::span<const ready_session> ready, const pass_limits& limits,
                       std::chrono::steady_clock::time_point now, const background_share* share,
                       std::chrono::steady_clock::time_point windows_from) {
  auto plan = schedule_builder(ready, limits, now, share, windows_from).take();
  if (!plan.empty()) return plan;
  // Whoever could be company has to wait for something else: nobody waits for that.
  auto alone = limits;
  alone.gather_sounds = alone.gather_windows = {};
  return schedule_builder(ready, alone, now, share, windows_from).take();
}

} // namespace parley::inference
