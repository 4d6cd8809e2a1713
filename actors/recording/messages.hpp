#pragma once

#include "actors/recording/recording_facts.hpp"
#include "actors/recording/recording_folder.hpp"
#include "actors/recording_desk.hpp"

#include <caf/all.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

// What sessions, the recorder and the archivist say to each other.
namespace parley::actors {

// ---- to the recorder
struct recording_begins; // from sessions
struct recording_event;
struct recording_ends;
struct recorder_stops; // from the house

using recorder_actor = caf::typed_actor<caf::reacts_to<recording_begins>, caf::reacts_to<recording_event>,
                                        caf::reacts_to<recording_ends>, caf::reacts_to<recorder_stops>>;

// ---- to the archivist
struct recording_noted;  // from the recorder
struct recordings_asked; // from GET /sessions
struct recording_file_asked;
struct recording_unwanted; // from DELETE /sessions/{id}
struct archive_swept;      // from itself
struct archivist_stops;    // from the recorder, its last word

using archivist_actor = caf::typed_actor<caf::reacts_to<recording_noted>, caf::reacts_to<recordings_asked>,
                                         caf::reacts_to<recording_file_asked>, caf::reacts_to<recording_unwanted>,
                                         caf::reacts_to<archive_swept>, caf::reacts_to<archivist_stops>>;

// ---- the messages themselves

/// A session is there; nothing is on the disk yet.
struct recording_begins {
  std::uint64_t number; ///< of the recording in this house
  recording_facts facts;
};

/// One frame as it crossed the wire.
struct recording_event {
  std::uint64_t number;
  speaker from;
  double t_ms; ///< since the connection was accepted
  std::shared_ptr<const std::string> frame;
  accepted_media media;
};

/// The session is over, or lets go of its recording.
struct recording_ends {
  std::uint64_t number;
  std::string mode;     ///< an init may have changed it
  std::string reason;   ///< why the session ended
  double seconds;       ///< since the connection was accepted
  std::int64_t dropped; ///< events that did not fit into the feed
};

/// No recording begins any more: it ends with the last one.
struct recorder_stops {};

/// A recording has begun, or is over.
struct recording_noted {
  recording_facts facts;
};

// What is asked over HTTP (`recording_desk`). `done` is called on the archivist's thread.

struct recordings_asked {
  requester who;
  std::size_t most;
  std::function<void(std::string json)> done;
};

struct recording_file_asked {
  std::string id;
  std::string file;
  requester who;
  std::function<void(desk_answer, std::string content)> done;
};

struct recording_unwanted {
  std::string id;
  requester who;
  std::function<void(desk_answer)> done;
};

/// Time to look for recordings that are too old.
struct archive_swept {};

/// No recording grows any more: it ends.
struct archivist_stops {};

} // namespace parley::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::recording_begins)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::recording_event)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::recording_ends)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::recorder_stops)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::recording_noted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::recordings_asked)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::recording_file_asked)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::recording_unwanted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::archive_swept)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::archivist_stops)
