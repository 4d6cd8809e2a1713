#include "net/channel/client_channel.hpp"

#include <algorithm>
#include <utility>

namespace parley::net {

client_channel::client_channel(const connection_limits& limits, std::shared_ptr<std::atomic<std::int64_t>> outbox_bytes,
                               std::function<void()> ring, std::optional<base::byte_budget::share> waits)
    : bell_(std::move(ring)), outbox_(limits.outbox_bytes, std::move(outbox_bytes), std::move(waits)),
      credit_(limits.credit_frames, limits.credit_bytes) {}

void client_channel::send(std::shared_ptr<const std::string> frame) {
  {
    const std::lock_guard lock(mutex_);
    const auto bytes = frame->size();
    outbox_.push(std::move(frame), bytes, small_held_bytes());
  }
  bell_.ring();
}

void client_channel::close(std::uint16_t code, std::string reason) {
  {
    const std::lock_guard lock(mutex_);
    outbox_.close(code, std::move(reason));
  }
  bell_.ring();
}

void client_channel::taken(std::size_t bytes) {
  bool resume = false;
  {
    const std::lock_guard lock(mutex_);
    const bool before = credit_.may_read();
    credit_.give_back(bytes);
    if (!held_.empty() && held_.front().first == bytes) { // they are taken in order
      held_.pop_front();
      held_large_bytes_ -= bytes;
    }
    outbox_.charge(small_held_bytes());
    resume = !before && credit_.may_read();
  }
  if (resume) bell_.ring();
}

void client_channel::became_chat() {
  {
    const std::lock_guard lock(mutex_);
    chat_ = true;
  }
  bell_.ring();
}

client_channel::work client_channel::next() {
  bell_.answered();
  const std::lock_guard lock(mutex_);
  work now;
  now.write = outbox_.next().value_or(nullptr);
  if (!now.write) now.close = outbox_.take_close();
  now.closing = outbox_.closing();
  now.may_read = credit_.may_read();
  now.chat = chat_;
  return now;
}

void client_channel::written() {
  const std::lock_guard lock(mutex_);
  outbox_.written(small_held_bytes());
}

bool client_channel::spend(std::size_t bytes, std::optional<base::byte_budget::share> held) {
  const std::lock_guard lock(mutex_);
  if (held) {
    held_.emplace_back(bytes, std::move(*held));
    held_large_bytes_ += bytes;
  }
  credit_.spend(bytes);
  if (outbox_.charge(small_held_bytes())) return credit_.may_read();
  outbox_.close(1013, "too many messages wait");
  bell_.ring();
  return false;
}

void client_channel::detach() {
  bell_.detach();
  const std::lock_guard lock(mutex_);
  outbox_.end();
}

/// Of what the session has not taken; large messages hold shares of their own.
std::size_t client_channel::small_held_bytes() const {
  return credit_.held_bytes() - std::min(held_large_bytes_, credit_.held_bytes());
}

} // namespace parley::net
