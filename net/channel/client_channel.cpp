#include "net/channel/client_channel.hpp"

#include <algorithm>
#include <utility>

namespace parley::net {

client_channel::client_channel(const connection_limits& limits, std::shared_ptr<std::atomic<std::int64_t>> outbox_bytes,
                               std::function<void()> ring, std::optional<base::byte_budget::share> waits)
    : bell_(std::move(ring)), outbox_(limits.outbox_bytes), credit_(limits.credit_frames, limits.credit_bytes),
      waits_(std::move(waits)), all_bytes_(std::move(outbox_bytes)) {}

void client_channel::send(std::shared_ptr<const std::string> frame) {
  {
    const std::lock_guard lock(mutex_);
    outbox_.push(std::move(frame));
    if (!count_waiting()) outbox_.overflow();
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
    if (!held_.empty() && held_.front().first == bytes) { // they are taken in order
      held_.pop_front();
      held_large_bytes_ -= bytes;
    }
    count_waiting();
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
  count_waiting();
  recount();
}

bool client_channel::spend(std::size_t bytes, std::optional<base::byte_budget::share> held) {
  const std::lock_guard lock(mutex_);
  if (held) {
    held_.emplace_back(bytes, std::move(*held));
    held_large_bytes_ += bytes;
  }
  credit_.spend(bytes);
  if (count_waiting()) return credit_.may_read();
  outbox_.close(1013, "too many messages wait");
  bell_.ring();
  return false;
}

void client_channel::detach() {
  bell_.detach();
  const std::lock_guard lock(mutex_);
  outbox_ = outbox(0);
  outbox_.close(0, {});
  waits_.reset();
  recount();
}

/// False if more waits than may.
bool client_channel::count_waiting() {
  constexpr std::size_t step = 64u << 10; // most connections never ask
  if (!waits_) return true;
  const auto waiting = outbox_.bytes() + credit_.held_bytes() - std::min(held_large_bytes_, credit_.held_bytes());
  const auto counted = waiting <= uncounted ? 0 : (waiting - uncounted + step - 1) / step * step;
  waits_->shrink_to(counted);
  return waits_->grow_to(counted);
}

void client_channel::recount() {
  const auto now = static_cast<std::int64_t>(outbox_.bytes());
  all_bytes_->fetch_add(now - counted_bytes_, std::memory_order_relaxed);
  counted_bytes_ = now;
}

} // namespace parley::net
