#include "net/channel/event_channel.hpp"

#include "protocol/codec/server_codec.hpp"

#include <utility>

namespace parley::net {

event_channel::event_channel(const connection_limits& limits, std::shared_ptr<std::atomic<std::int64_t>> outbox_bytes,
                             std::function<void()> ring, std::optional<base::byte_budget::share> waits)
    : bell_(std::move(ring)), outbox_(limits.outbox_bytes, std::move(outbox_bytes), std::move(waits)) {}

void event_channel::hand_over(protocol::server_event&& event) {
  const auto bytes = protocol::about_bytes(event);
  {
    const std::lock_guard lock(mutex_);
    outbox_.push(std::move(event), bytes);
  }
  bell_.ring();
}

void event_channel::close(std::uint16_t code, std::string reason) {
  {
    const std::lock_guard lock(mutex_);
    outbox_.close(code, std::move(reason));
  }
  bell_.ring();
}

event_channel::work event_channel::next() {
  bell_.answered();
  const std::lock_guard lock(mutex_);
  work now;
  now.event = outbox_.next();
  if (!now.event) now.close = outbox_.take_close();
  return now;
}

void event_channel::written() {
  const std::lock_guard lock(mutex_);
  outbox_.written();
}

void event_channel::detach() {
  bell_.detach();
  const std::lock_guard lock(mutex_);
  outbox_.end();
}

} // namespace parley::net
