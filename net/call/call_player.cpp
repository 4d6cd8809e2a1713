#include "net/call/call_player.hpp"

#include "net/logger.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace parley::net {

using protocol::call::playout;

call_player::call_player(std::uint32_t source, int payload_type) {
  next_.source = source;
  next_.payload_type = static_cast<std::uint8_t>(payload_type);
}

void call_player::send_to(std::shared_ptr<media_transport> transport) {
  const std::lock_guard lock(mutex_);
  transport_.swap(transport); // the old one goes outside
}

void call_player::add(protocol::pcm sound) {
  const std::lock_guard lock(mutex_);
  waiting_.add(std::move(sound));
}

void call_player::clear() {
  const std::lock_guard lock(mutex_);
  waiting_.clear();
}

bool call_player::run(protocol::time_point now) {
  const std::lock_guard lock(mutex_);
  while (const auto frame = waiting_.take(now)) {
    next_.payload = encoder_.encode(frame->samples);
    next_.timestamp = frame->timestamp;
    next_.marker = frame->begins;
    if (!next_.payload.empty() && transport_) transport_->send_rtp(write_rtp(next_));
    ++next_.sequence;
  }
  return !waiting_.empty();
}

playout_clock::~playout_clock() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  woken_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void playout_clock::start(std::weak_ptr<call_player> player) {
  {
    const std::lock_guard lock(mutex_);
    fresh_.push_back(std::move(player));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  woken_.notify_one();
}

void playout_clock::run() {
  std::vector<std::shared_ptr<call_player>> playing;
  auto due = std::chrono::steady_clock::now();
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (playing.empty()) {
        woken_.wait(lock, [this] { return stopping_ || !fresh_.empty(); });
        due = std::chrono::steady_clock::now();
      } else {
        woken_.wait_until(lock, due, [this] { return stopping_; });
      }
      if (stopping_) return;
      for (const auto& each : std::exchange(fresh_, {}))
        if (auto live = each.lock(); live && std::find(playing.begin(), playing.end(), live) == playing.end())
          playing.push_back(std::move(live));
    }
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(playing, [now](const auto& each) {
      try {
        return !each->run(now);
      } catch (const std::exception& problem) {
        log()->error("a call's sound failed: {}", problem.what());
        return true;
      }
    });
    due = std::max(due + playout::frame, now);
  }
}

} // namespace parley::net
