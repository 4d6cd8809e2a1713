#pragma once

#include "actors/principal.hpp"
#include "base/open_file.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace parley::actors {

/// The outcome of a request about one recording.
enum class recording_answer : std::uint8_t {
  done,
  unknown,   ///< no such recording, or no such file in it
  forbidden, ///< the recording of another API key
  in_use,    ///< it is still in progress and cannot be removed
  failed,    ///< the disk failed
};

/// A server's recordings, as net/ accesses them. Thread-safe, never blocks; callbacks run on another thread.
class recordings_api {
public:
  virtual ~recordings_api() = default;

  /// A JSON array of the recordings that `who` may see, newest first, at most `most`, without those in progress.
  virtual void list(principal who, std::size_t most, std::function<void(std::string json)> done) = 0;

  /// Opens one file of a recording: `input.wav`, `output.wav`, `events.jsonl`, `meta.json` or `frames/NAME`; other names
  /// are unknown. `id` is the session's. The file is null unless the answer is `done`.
  virtual void fetch(std::string id, std::string file, principal who,
                     std::function<void(recording_answer, std::shared_ptr<const base::open_file>)> done) = 0;

  /// Removes a recording from the disk.
  virtual void remove(std::string id, principal who, std::function<void(recording_answer)> done) = 0;
};

} // namespace parley::actors
