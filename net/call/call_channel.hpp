#pragma once

#include "net/call/call_player.hpp"
#include "net/channel/client_channel.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace parley::net {

/// A call's link: besides events, it takes what the client is to hear. Who follows the call gets the same events.
class call_channel final : public client_channel {
public:
  call_channel(const connection_limits& limits, std::shared_ptr<std::atomic<std::int64_t>> outbox_bytes,
               std::function<void()> ring, base::byte_budget::share waits, std::shared_ptr<call_player> player,
               std::shared_ptr<playout_clock> clock)
      : client_channel(limits, std::move(outbox_bytes), std::move(ring), std::move(waits)), player_(std::move(player)),
        clock_(std::move(clock)) {}

  void send(std::shared_ptr<const std::string> frame) override {
    {
      const std::lock_guard lock(mutex_);
      if (!first_) first_ = frame;
      for (const auto& each : followers_) each->send(frame);
    }
    client_channel::send(std::move(frame));
  }
  void close(std::uint16_t code, std::string reason) override {
    end_followers(reason);
    client_channel::close(code, std::move(reason));
  }

  /// Sends it all events from now on, after the first of all, which tells what the session is. False: there are too many.
  bool add_follower(std::shared_ptr<actors::client_link> link) {
    const std::lock_guard lock(mutex_);
    if (followers_.size() >= most_followers) return false;
    if (first_) link->send(first_);
    followers_.push_back(std::move(link));
    return true;
  }
  void remove_follower(const std::shared_ptr<actors::client_link>& link) {
    const std::lock_guard lock(mutex_);
    std::erase(followers_, link);
  }
  void end_followers(const std::string& reason) {
    std::vector<std::shared_ptr<actors::client_link>> left;
    {
      const std::lock_guard lock(mutex_);
      left.swap(followers_);
    }
    for (const auto& each : left) each->close(1000, reason);
  }

  void play(const std::shared_ptr<const std::vector<float>>& sound) override {
    player_->add(sound);
    clock_->start(player_);
  }
  void stop_playing() override { player_->clear(); }

private:
  static constexpr std::size_t most_followers = 4;

  const std::shared_ptr<call_player> player_;
  const std::shared_ptr<playout_clock> clock_;
  std::mutex mutex_; ///< guards what follows
  std::vector<std::shared_ptr<actors::client_link>> followers_;
  std::shared_ptr<const std::string> first_;
};

} // namespace parley::net
