#pragma once

#include "inference/engine/task_context.hpp"

#include <memory>

namespace parley::inference {

/// The reference voice that a task waits for, if it has to. Destroying it cancels the wait.
class voice_request {
public:
  voice_request(task_context& with, session_id who) : with_(with), who_(who) {}
  ~voice_request() { withdraw(); }
  voice_request(const voice_request&) = delete;
  voice_request& operator=(const voice_request&) = delete;

  /// The voice of the recording, or without one the default voice, which may be null. Null and `waits` while it is
  /// being prepared. Only with a speaker.
  std::shared_ptr<const speech::voice> ask(const pcm& recording) {
    if (!recording || recording->empty()) return with_.options.default_voice;
    waits_ = true;
    auto voice = with_.voices->ask(who_, recording);
    if (voice) waits_ = false;
    return voice;
  }

  bool waits() const { return waits_; }
  void arrived() { waits_ = false; }

  void withdraw() {
    if (waits_) with_.voices->forget(who_);
    waits_ = false;
  }

private:
  task_context& with_;
  const session_id who_;
  bool waits_ = false;
};

} // namespace parley::inference
