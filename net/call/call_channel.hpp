#pragma once

#include "net/call/call_player.hpp"
#include "net/channel/client_channel.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace parley::net {

/// A call's link: besides events, it takes what the client is to hear.
class call_channel final : public client_channel {
public:
  call_channel(const connection_limits& limits, std::shared_ptr<std::atomic<std::int64_t>> outbox_bytes,
               std::function<void()> ring, base::byte_budget::share waits, std::shared_ptr<call_player> player,
               std::shared_ptr<playout_clock> clock)
      : client_channel(limits, std::move(outbox_bytes), std::move(ring), std::move(waits)), player_(std::move(player)),
        clock_(std::move(clock)) {}

  void play(std::shared_ptr<const std::vector<float>> sound) override {
    player_->add(std::move(sound));
    clock_->start(player_);
  }
  void stop_playing() override { player_->clear(); }

private:
  const std::shared_ptr<call_player> player_;
  const std::shared_ptr<playout_clock> clock_;
};

} // namespace parley::net
