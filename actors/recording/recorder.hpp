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

/// Writes the recordings of all sessions, on a thread of its own. A recording begins on the disk with its client's
/// first event: who only asked for a place leaves none. One that the disk refuses ends as `failed`, the others go on.
class recorder : public recorder_actor::base {
public:
  /// `feed` and `counted` outlive it. To be spawned `detached`: it waits for the disk.
  recorder(caf::actor_config& config, std::filesystem::path directory, recorder_feed& feed, recording_meter& counted,
           archivist_actor archivist);

  const char* name() const override { return "recorder"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  struct open_recording {
    recording_facts facts;
    std::vector<recording_event> before; ///< what the server said before the client's first word
    std::unique_ptr<recording_folder> folder;
    bool failed = false;
  };

  void begin(const recording_begins& order);
  void write(const recording_event& event);
  void end(const recording_ends& order);

  /// Runs `work` on the recording's folder; what the disk refuses ends the recording.
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
