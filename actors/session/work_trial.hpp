#pragma once

#include "conversation/engine.hpp"

#include <utility>
#include <vector>

namespace parley::actors {

/// What a session does about work that was in progress when a worker died, and may have killed it: counts how often
/// that has happened, and holds back commands until the queue manager allows a retry (trial_queue). Sends nothing.
class work_trial {
public:
  /// After this many workers have died with the same work, or replaying the same replay buffer, no other worker gets it.
  static constexpr int most_losses = 2;

  /// A worker now has work that it has not answered.
  void sent() { exposed_ = true; }

  /// All of it has been answered.
  void answered() {
    exposed_ = false;
    work_losses_ = 0;
  }

  /// The replay buffer has been replayed.
  void replayed() {
    exposed_ = false;
    replay_losses_ = 0;
  }

  /// The worker has died. Returns whether too many have, with this work or replay.
  bool lost(bool replaying) {
    if (!exposed_) return false;
    return ++(replaying ? replay_losses_ : work_losses_) >= most_losses;
  }

  /// Whether a trial must be requested before this work is sent, or the buffer replayed.
  bool needed_for_work() const { return work_losses_ > 0 && stage_ == stage::none; }
  bool needed_for_replay() const { return replay_losses_ > 0; }

  void asked() { stage_ = stage::asked; }
  bool pending() const { return stage_ == stage::asked; }

  /// Returns false if nobody asked, or it was granted already.
  bool grant() {
    if (stage_ != stage::asked) return false;
    stage_ = stage::granted;
    return true;
  }

  /// The trial is over, or no longer wanted. Returns whether there was one.
  bool end() { return std::exchange(stage_, stage::none) != stage::none; }

  /// Holds a command back until the trial is granted.
  void hold(conversation::command&& command) { held_.push_back(std::move(command)); }
  std::vector<conversation::command> release() { return std::exchange(held_, {}); }

  /// No worker has anything left. The queue manager forgets a trial together with its slot.
  void forget() {
    exposed_ = false;
    stage_ = stage::none;
    held_.clear();
  }

private:
  enum class stage { none, asked, granted };
  stage stage_ = stage::none;
  bool exposed_ = false; ///< the worker has unanswered work of this session
  int work_losses_ = 0;  ///< workers that died with the work in progress
  int replay_losses_ =
      0; ///< workers that died during a replay of the replay buffer, since it was last replayed completely
  std::vector<conversation::command> held_;
};

} // namespace parley::actors
