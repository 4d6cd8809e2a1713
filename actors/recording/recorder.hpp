#pragma once

#include "actors/recording/messages.hpp"
#include "actors/recording/recorder_feed.hpp"
#include "actors/recording/recording_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace parley::actors {

/// Writes the recordings of all sessions on its own thread. A recording starts on disk with its client's first event: a
/// client that only waited in the queue leaves none. If the disk fails, that recording ends as `failed` and the others
/// continue.
class recorder : public recorder_actor::base {
public:
  /// `feed` and `counted` must outlive it. Spawn it `detached`, because it waits for the disk.
  recorder(caf::actor_config& config, std::filesystem::path directory, recorder_feed& feed, recording_meter& counted,
           archivist_actor archivist);

  const char* name() const override { return "recorder"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  struct open_recording {
    recording_facts facts;
    std::vector<recording_event> before; ///< server events before the client's first event
    std::unique_ptr<recording_folder> folder;
    bool failed = false;
  };

  void begin(const recording_begins& order);
  void write(const recording_event& event);
  void end(const recording_ends& order);

  /// Runs `work` on the recording's folder; if the disk fails, the recording ends.
  template<class Work>
  void on_disk(open_recording& of, Work work);

  void quit_if_done();

  const std::filesystem::path directory_;
  recorder_feed& feed_;
  recording_meter& counted_;
  archivist_actor archivist_;
  std::map<std::uint64_t, open_recording> open_;
  bool stopping_ = false;
};

} // namespace parley::actors
