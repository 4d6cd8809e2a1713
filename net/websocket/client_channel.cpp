#include "net/websocket/client_channel.hpp"

#include <utility>

namespace parley::net {

client_channel::client_channel(const connection_limits& limits, std::shared_ptr<std::atomic<std::int64_t>> outbox_bytes,
                               std::function<void()> ring)
    : bell_(std::move(ring)), outbox_(limits.outbox_bytes), credit_(limits.credit_frames, limits.credit_bytes),
      all_bytes_(std::move(outbox_bytes)) {}

void client_channel::send(std::shared_ptr<const std::string> frame) {
  {
    const std::lock_guard lock(mutex_);
    outbox_.push(std::move(frame));
    recount();
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
    if (!held_.empty() && held_.front().first == bytes) held_.pop_front(); // they are taken in order
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
  now.write = outbox_.next();
  if (!now.write) now.close = outbox_.take_close();
  now.closing = outbox_.closing();
  now.may_read = credit_.may_read();
  now.chat = chat_;
  return now;
}

void client_channel::written() {
  const std::lock_guard lock(mutex_);
  outbox_.written();
  recount();
}

bool client_channel::spend(std::size_t bytes, std::optional<byte_budget::share> held) {
  const std::lock_guard lock(mutex_);
  if (held) held_.emplace_back(bytes, std::move(*held));
  credit_.spend(bytes);
  return credit_.may_read();
}

void client_channel::detach() {
  bell_.detach();
  const std::lock_guard lock(mutex_);
  outbox_ = outbox(0);
  outbox_.close(0, {});
  recount();
}

void client_channel::recount() {
  const auto now = static_cast<std::int64_t>(outbox_.bytes());
  all_bytes_->fetch_add(now - counted_bytes_, std::memory_order_relaxed);
  counted_bytes_ = now;
}

} // namespace parley::net
