#include "net/link.hpp"

#include <utility>

namespace parley::net {

link::link(const connection_limits& limits, std::function<void()> ring)
    : bell_(std::move(ring)), outbox_(limits.outbox_bytes), credit_(limits.credit_frames, limits.credit_bytes) {}

void link::send(std::shared_ptr<const std::string> frame) {
  {
    const std::lock_guard lock(mutex_);
    outbox_.push(std::move(frame));
  }
  bell_.ring();
}

void link::close(std::uint16_t code, std::string reason) {
  {
    const std::lock_guard lock(mutex_);
    outbox_.close(code, std::move(reason));
  }
  bell_.ring();
}

void link::taken(std::size_t bytes) {
  bool resume = false;
  {
    const std::lock_guard lock(mutex_);
    const bool before = credit_.may_read();
    credit_.give_back(bytes);
    resume = !before && credit_.may_read();
  }
  if (resume) bell_.ring();
}

void link::became_chat() {
  {
    const std::lock_guard lock(mutex_);
    chat_ = true;
  }
  bell_.ring();
}

link::work link::next() {
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

void link::written() {
  const std::lock_guard lock(mutex_);
  outbox_.written();
}

bool link::spend(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  credit_.spend(bytes);
  return credit_.may_read();
}

void link::detach() {
  bell_.detach();
  const std::lock_guard lock(mutex_);
  outbox_ = outbox(0);
  outbox_.close(0, {});
}

} // namespace parley::net
