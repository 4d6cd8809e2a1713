#pragma once

#include "net/channel/doorbell.hpp"
#include "net/routes/http_message.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace parley::net {

/// Takes the answer to one request from any thread to the connection's strand.
class pending_reply {
public:
  explicit pending_reply(std::function<void()> post) : bell_(std::move(post)) {}

  void give(http_reply reply) {
    {
      const std::lock_guard lock(mutex_);
      if (given_) return;
      given_ = true;
      reply_ = std::move(reply);
    }
    bell_.ring();
  }

  std::optional<http_reply> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reply_, std::nullopt);
  }

  void detach() { bell_.detach(); }

private:
  doorbell bell_;
  std::mutex mutex_;
  std::optional<http_reply> reply_;
  bool given_ = false;
};

} // namespace parley::net
