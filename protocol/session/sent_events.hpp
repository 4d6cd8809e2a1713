#pragma once

#include "base/ring_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace parley::protocol {

/// The last numbered events of a session as they were sent, for a client that comes back (docs/protocol.md 14). At the
/// limit, the oldest are dropped. An event larger than the limit is not kept, nor is anything before it.
class sent_events {
public:
  using frame = std::shared_ptr<const std::string>;

  explicit sent_events(std::size_t bound_bytes) : bound_(bound_bytes) {}

  /// Events must come in the order of their numbers, without a gap.
  void keep(std::uint64_t id, frame text) {
    bytes_ += text->size();
    next_ = id + 1;
    kept_.push_back(std::move(text));
    for (; bytes_ > bound_; kept_.pop_front()) bytes_ -= kept_.front()->size();
  }

  /// The number of the oldest kept event, or if there is none, of the next event.
  std::uint64_t oldest() const { return next_ - kept_.size(); }

  /// Passes every event after number `seen` to `give`, in order. `seen` must be at least `oldest() - 1`.
  template<class Give>
  void after(std::uint64_t seen, Give give) const {
    for (std::size_t i = seen + 1 - oldest(); i < kept_.size(); ++i) give(kept_[i]);
  }

  /// Drops everything.
  void clear() {
    bytes_ = 0;
    kept_.clear();
  }

  std::size_t bytes() const { return bytes_; }

private:
  std::size_t bound_;
  std::size_t bytes_ = 0;
  std::uint64_t next_ = 1;
  base::ring_queue<frame> kept_;
};

} // namespace parley::protocol
