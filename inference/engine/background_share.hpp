#pragma once

#include "inference/engine/stage.hpp"
#include "inference/vocabulary.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace parley::inference {

/// A part of a pass.
struct planned_work {
  session_id session = 0;
  stage at = stage::idle;
  std::int64_t rows = 1;
};

/// The units that are due: there are none, all have time to spare, or one of them has not.
enum class due_units : std::uint8_t { none, in_time, pressed };

/// How much time of the engine the work gets that is no unit, and who had how much of it. Work is divided into parts whose
/// costs are measured. Beside units that are due it gets a quarter of the time; it gets nothing while one of them has no
/// time to spare, but never nothing for longer than `longest_wait` and the pass under way. Where units have had no time to
/// spare for `longest_wait`, moved sessions get their quarter all the same: late seconds are better than a lost
/// conversation. Plain numbers: time is an argument.
class background_share {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::milliseconds step_alone{40};  ///< in one pass, if no unit is due: one may come
  static constexpr std::chrono::milliseconds step_beside{15}; ///< in one pass beside units
  static constexpr int pause = 3; ///< after a step, units go on alone for that many times as long
  static constexpr std::chrono::milliseconds spare{150}; ///< a unit that has less time to spare runs alone
  static constexpr std::chrono::seconds longest_wait{1};
  static constexpr std::chrono::milliseconds quantum{40}; ///< by how much one session may be served more than another

  /// The time that the background may take in this pass. `units`: units that are due take part. `spare`: the time that
  /// the most urgent of them has to spare.
  duration allowance(bool units, duration spare, time_point now) const;

  /// The same for sessions that have been moved here from another engine, where there is nothing for the others.
  duration allowance_of_moved(time_point now) const;

  /// What one row, piece or layer of this stage costs; none = it never ran.
  std::optional<duration> cost(stage at) const;

  /// What one pass of a unit that is due takes.
  duration unit_pass() const { return unit_pass_; }

  /// How much time a session has been given: no less than what anybody has been given who was always ready.
  duration served(session_id who) const;

  /// `all` took `took` in one call, `paid` being those parts of it that take of the share. Stages that share a call are
  /// told together.
  void ran(std::span<const planned_work> all, std::span<const planned_work> paid, duration took);

  /// A pass is over: `owners` were ready for work that takes of the share, whether they got any of it or not.
  void pass_over(std::span<const session_id> owners, due_units units, time_point begin, time_point now);

  /// The session has ended.
  void forget(session_id who) { served_.erase(who); }

private:
  static constexpr std::size_t stages = static_cast<std::size_t>(stage::sound) + 1;

  std::array<std::optional<duration>, stages> costs_;
  std::map<session_id, duration> served_;
  duration floor_{0}; ///< of what is served
  duration unit_pass_{0};
  duration taken_{0};                 ///< in the pass under way
  time_point resume_;                 ///< until then units that are due run alone
  std::optional<time_point> pressed_; ///< since then, units have had no time to spare
  time_point last_ran_;               ///< the last pass in which the background took part, or had nothing to do
};

} // namespace parley::inference
