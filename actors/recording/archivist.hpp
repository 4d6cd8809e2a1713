#pragma once

#include "actors/recording/messages.hpp"
#include "actors/recording/recorder_feed.hpp"
#include "actors/recording/recording_index.hpp"
#include "actors/recording/retention.hpp"
#include "base/log_throttle.hpp"

#include <chrono>
#include <filesystem>
#include <string>

namespace parley::actors {

/// Manages existing recordings on its own thread: the index, HTTP requests, and retention. The recorder never waits for
/// it. If a disk operation fails, only that request fails.
class archivist : public archivist_actor::base {
public:
  /// `feed` and `counted` must outlive it. Spawn it `detached`, because it waits for the disk.
  archivist(caf::actor_config& config, std::filesystem::path directory, recording_index index, retention keep,
            recorder_feed& feed, recording_meter& counted);

  const char* name() const override { return "archivist"; }

protected:
  behavior_type make_behavior() override;

private:
  template<class Work, class Otherwise>
  void attempt(Work work, Otherwise otherwise);

  void note(const recording_noted& news);
  void list(const recordings_asked& question);
  void fetch(const recording_file_asked& question);
  void remove(const recording_unwanted& order);
  void sweep();
  /// Returns whether its files are gone.
  bool erase(const recording_facts& which);
  void count();

  const std::filesystem::path directory_;
  recording_index index_;
  const retention keep_;
  recorder_feed& feed_;
  recording_meter& counted_;
  base::log_throttle complaints_{std::chrono::minutes(1), 10}; ///< each request may fail
};

} // namespace parley::actors
