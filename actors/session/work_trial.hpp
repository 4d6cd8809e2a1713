#pragma once

#include "inference/unit.hpp"

#include <utility>
#include <vector>

namespace parley::actors {

/// What a session does about work that was in flight when a worker died, and may have killed it: how often that has happened, and what is held
/// back until the queue manager says that it may be retried (trial_queue). Plain bookkeeping; sends nothing.
class work_trial {
public:
  /// So many workers die of the same work, or of the replay of the same journal. No further one gets it.
  static constexpr int most_losses = 2;

  /// A worker has work now that it has not answered.
  void sent() { exposed_ = true; }

  /// All of it was answered.
  void answered() {
    exposed_ = false;
    work_losses_ = 0;
  }

  /// The journal was replayed.
  void replayed() {
    exposed_ = false;
    replay_losses_ = 0;
  }

  /// The worker has died. Whether too many have, of this work or replay.
  bool lost(bool replaying) {
    if (!exposed_) return false;
    return ++(replaying ? replay_losses_ : work_losses_) >= most_losses;
  }

  /// Whether a trial has to be asked for before this work is sent, or the journal replayed.
  bool needed_for_work() const { return work_losses_ > 0 && stage_ == stage::none; }
  bool needed_for_replay() const { return replay_losses_ > 0; }

  void asked() { stage_ = stage::asked; }
  bool pending() const { return stage_ == stage::asked; }

  /// False when nobody asked, or it was granted already.
  bool grant() {
    if (stage_ != stage::asked) return false;
    stage_ = stage::granted;
    return true;
  }

  /// It is over, or no longer wanted. Whether there was one.
  bool end() { return std::exchange(stage_, stage::none) != stage::none; }

  /// Waits for the trial.
  void hold(inference::command&& command) { held_.push_back(std::move(command)); }
  std::vector<inference::command> release() { return std::exchange(held_, {}); }

  /// Nothing is left with any worker. The queue manager forgets a trial together with its slot.
  void forget() {
    exposed_ = false;
    stage_ = stage::none;
    held_.clear();
  }

private:
  enum class stage { none, asked, granted };
  stage stage_ = stage::none;
  bool exposed_ = false;  ///< the worker has unanswered work of this session
  int work_losses_ = 0;   ///< workers that died with the work in progress
  int replay_losses_ = 0; ///< workers that died while the journal was being replayed, since the last time it was
                          ///< replayed completely
  std::vector<inference::command> held_;
};

} // namespace parley::actors
