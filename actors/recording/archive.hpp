#pragma once

#include "actors/recording/messages.hpp"
#include "actors/recording/recorder_feed.hpp"
#include "actors/recording/recordings_api.hpp"
#include "config/settings.hpp"

#include <caf/actor_system.hpp>

namespace parley::actors {

/// Recording, as seen by the rest of the server: the recorder and the archivist. Throws std::runtime_error or
/// std::filesystem::filesystem_error if `record.dir` cannot be used.
class archive final : public recordings_api {
public:
  /// Connects `feed` to the recorder. `ended` is called, on a thread of the system, when one of the two has ended, in plain
  /// words.
  archive(caf::actor_system& system, const config::settings& settings, recorder_feed& feed, recording_meter& counted,
          const std::function<void(const std::string& what)>& ended);

  /// No further recordings start; both actors end with the last recording.
  void stop();

  void list(principal who, std::size_t most, std::function<void(std::string json)> done) override;
  void fetch(std::string id, std::string file, principal who,
             std::function<void(recording_answer, std::string content)> done) override;
  void remove(std::string id, principal who, std::function<void(recording_answer)> done) override;

private:
  archivist_actor archivist_;
  recorder_actor recorder_;
};

} // namespace parley::actors
