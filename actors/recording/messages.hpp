#pragma once

#include "actors/recording/recording_facts.hpp"
#include "actors/recording/recording_folder.hpp"
#include "actors/recording/recordings_api.hpp"

#include <caf/all.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

// The messages between sessions, the recorder and the archivist.
namespace parley::actors {

// ---- to the recorder
struct recording_begins; // from sessions
struct recording_event;
struct recording_ends;
struct recorder_stops; // from the server core

using recorder_actor = caf::typed_actor<caf::reacts_to<recording_begins>, caf::reacts_to<recording_event>,
                                        caf::reacts_to<recording_ends>, caf::reacts_to<recorder_stops>>;

// ---- to the archivist
struct recording_noted;  // from the recorder
struct recordings_asked; // from GET /sessions
struct recording_file_asked;
struct recording_unwanted; // from DELETE /sessions/{id}
struct archive_swept;      // from itself
struct archivist_stops;    // from the recorder, as its last message

using archivist_actor = caf::typed_actor<caf::reacts_to<recording_noted>, caf::reacts_to<recordings_asked>,
                                         caf::reacts_to<recording_file_asked>, caf::reacts_to<recording_unwanted>,
                                         caf::reacts_to<archive_swept>, caf::reacts_to<archivist_stops>>;

// ---- the messages themselves

/// A session exists; nothing is on disk yet.
struct recording_begins {
  std::uint64_t number; ///< id of the recording in this server
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

/// The session has ended, or will no longer be recorded.
struct recording_ends {
  std::uint64_t number;
  std::string mode;     ///< repeated because an init may have changed it
  std::string reason;   ///< why the session ended
  double seconds;       ///< since the connection was accepted
  std::int64_t dropped; ///< events that did not fit into the feed
};

/// No further recordings start; the recorder ends with the last one.
struct recorder_stops {};

/// A recording has started or ended.
struct recording_noted {
  recording_facts facts;
};

// A request over HTTP (`recordings_api`). `done` is called on the archivist's thread.

struct recordings_asked {
  principal who;
  std::size_t most;
  std::function<void(std::string json)> done;
};

struct recording_file_asked {
  std::string id;
  std::string file;
  principal who;
  std::function<void(recording_answer, std::shared_ptr<const base::open_file>)> done;
};

struct recording_unwanted {
  std::string id;
  principal who;
  std::function<void(recording_answer)> done;
};

/// Time to look for recordings that are too old.
struct archive_swept {};

/// No recording is in progress any more, so the archivist ends.
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
