#include "actors/recording/recorder_feed.hpp"

#include <utility>

namespace parley::actors {

namespace {

/// The cost of a message besides its frame, so that many small frames cannot evade the limit.
constexpr std::size_t message_bytes = 256;

} // namespace

std::string recorder_feed::take_id(const std::string& wanted) {
  const std::lock_guard lock(mutex_);
  if (ids_.insert(wanted).second) return wanted;
  const auto numbered = [&](std::uint64_t number) { return wanted + "-" + std::to_string(number); };
  const auto is_taken = [&](std::uint64_t number) { return ids_.contains(numbered(number)); };
  // Not one number after the other: a client may have taken any number of them.
  std::uint64_t taken_below = 1, free = 2;
  while (is_taken(free)) {
    taken_below = free;
    free *= 2;
  }
  while (free - taken_below > 1) {
    const auto middle = taken_below + (free - taken_below) / 2;
    (is_taken(middle) ? taken_below : free) = middle;
  }
  return *ids_.insert(numbered(free)).first;
}

void recorder_feed::taken(std::string id) {
  const std::lock_guard lock(mutex_);
  ids_.insert(std::move(id));
}

void recorder_feed::forgotten(const std::string& id) {
  const std::lock_guard lock(mutex_);
  ids_.erase(id);
}

bool recorder_feed::send(recording_event event) {
  const std::size_t bytes = event.frame->size() + message_bytes;
  if (waiting_bytes_.fetch_add(bytes) + bytes > most_bytes_) {
    waiting_bytes_.fetch_sub(bytes);
    counted_.dropped.Increment();
    return false;
  }
  caf::anon_send(recorder_, std::move(event));
  return true;
}

void recorder_feed::written(std::size_t bytes) {
  const std::size_t all = bytes + message_bytes;
  counted_.waiting_bytes.Set(static_cast<double>(waiting_bytes_.fetch_sub(all) - all));
}

recording_tap::recording_tap(recorder_feed& feed, recording_facts facts, time_point accepted)
    : feed_(feed), accepted_(accepted), number_(feed.next_number()), mode_(facts.mode) {
  caf::anon_send(feed_.recorder(), recording_begins{number_, std::move(facts)});
}

void recording_tap::pass(speaker from, std::shared_ptr<const std::string> frame, accepted_media media) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  if (!feed_.send({number_, from, elapsed_ms(), std::move(frame), media})) ++dropped_;
}

void recording_tap::became(std::string_view mode) {
  const std::lock_guard lock(mutex_);
  mode_ = mode;
}

void recording_tap::end(std::string reason) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(ended_, true)) return;
  caf::anon_send(feed_.recorder(), recording_ends{number_, mode_, std::move(reason), elapsed_ms() / 1000, dropped_});
}

double recording_tap::elapsed_ms() const {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - accepted_).count();
}

} // namespace parley::actors
