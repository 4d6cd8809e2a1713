#pragma once

#include "actors/requester.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace parley::actors {

/// What became of a question about one recording.
enum class desk_answer : std::uint8_t {
  done,
  unknown,   ///< no such recording, or no such file in it
  forbidden, ///< the recording of another API key
  in_use,    ///< it still grows and cannot be removed
  failed,    ///< the disk refuses
};

/// The recordings of a house as net/ asks for them. Thread-safe, never blocks; the callbacks run on another thread.
class recording_desk {
public:
  virtual ~recording_desk() = default;

  /// A JSON array of the recordings that `who` may see, the newest first, at most `most`; without those that still
  /// grow.
  virtual void list(requester who, std::size_t most, std::function<void(std::string json)> done) = 0;

  /// One file of a recording: `input.wav`, `output.wav`, `events.jsonl`, `meta.json` or `frames/NAME`; other names are
  /// unknown. `id` is the session's.
  virtual void fetch(std::string id, std::string file, requester who,
                     std::function<void(desk_answer, std::string content)> done) = 0;

  /// Removes a recording from the disk.
  virtual void remove(std::string id, requester who, std::function<void(desk_answer)> done) = 0;
};

} // namespace parley::actors
