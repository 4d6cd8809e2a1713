#pragma once

#include "actors/meters/recording_meter.hpp"
#include "actors/recording/messages.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace parley::actors {

/// The bounded channel of events from sessions to the recorder. Events that do not fit are dropped and counted: no
/// session ever waits for the disk. Thread-safe; must outlive the actors.
class recorder_feed {
public:
  /// `most_bytes` limits the frames that the recorder has not written yet. `counted` must outlive it.
  recorder_feed(std::size_t most_bytes, recording_meter& counted) : most_bytes_(most_bytes), counted_(counted) {}

  /// Call before the first session.
  void lead_to(recorder_actor recorder) { recorder_ = std::move(recorder); }
  /// Call when all actors have ended.
  void lead_nowhere() { recorder_ = nullptr; }
  recorder_actor& recorder() { return recorder_; }

  /// Reserves the id of a new recording: `wanted`, with a number appended if that is taken.
  std::string take_id(const std::string& wanted);

  /// Marks an id as in use on the disk, or as free again.
  void taken(std::string id);
  void forgotten(const std::string& id);

  std::uint64_t next_number() { return ++last_number_; }

  /// Sends it and returns true, or drops it and returns false.
  bool send(recording_event event);

  /// The recorder has finished with a frame of that many bytes.
  void written(std::size_t bytes);

private:
  std::size_t most_bytes_;
  recording_meter& counted_;
  recorder_actor recorder_;
  std::atomic<std::size_t> waiting_bytes_{0};
  std::atomic<std::uint64_t> last_number_{0};
  std::mutex mutex_;
  std::set<std::string> ids_;
};

/// A recording's end of the feed: of a session, or of a connection with the sessions behind it, one after the other. Who made
/// it ends it. Thread-safe.
class recording_tap {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// `facts`: with the id from take_id, and whatever else is known at the start.
  recording_tap(recorder_feed& feed, recording_facts facts, time_point accepted);
  recording_tap(const recording_tap&) = delete;
  recording_tap& operator=(const recording_tap&) = delete;

  /// Records one frame that crosses the wire; `media` says what to keep of its sound and pictures. Never blocks.
  void pass(speaker from, std::shared_ptr<const std::string> frame, accepted_media media);

  /// Sets the current mode; an init may choose it.
  void became(std::string_view mode);

  /// Ends the recording; later calls do nothing.
  void end(std::string reason);

private:
  double elapsed_ms() const;

  recorder_feed& feed_;
  const time_point accepted_;
  const std::uint64_t number_;
  std::mutex mutex_;
  std::string mode_;
  std::int64_t dropped_ = 0;
  bool ended_ = false;
};

} // namespace parley::actors
