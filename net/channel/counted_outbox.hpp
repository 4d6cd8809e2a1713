#pragma once

#include "base/byte_budget.hpp"
#include "net/channel/outbox.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace parley::net {

/// An outbox that is counted: with those of all connections, and for its client. Not thread-safe.
template<class Item>
class counted_outbox {
public:
  /// `all_bytes`: the sum over all outboxes. `waits`: for what waits above `uncounted` bytes; null = it is not counted.
  counted_outbox(std::size_t bound, std::shared_ptr<std::atomic<std::int64_t>> all_bytes,
                 std::optional<base::byte_budget::share> waits)
      : box_(bound), waits_(std::move(waits)), all_bytes_(std::move(all_bytes)) {}

  static constexpr std::size_t uncounted = 192u << 10;

  /// `also`: bytes that wait elsewhere for the same connection.
  void push(Item what, std::size_t bytes, std::size_t also = 0) {
    box_.push(std::move(what), bytes);
    if (!charge(also)) box_.overflow();
    recount();
  }

  void close(std::uint16_t code, std::string reason) { box_.close(code, std::move(reason)); }

  std::optional<Item> next() { return box_.next(); }
  std::optional<close_frame> take_close() { return box_.take_close(); }
  bool closing() const { return box_.closing(); }

  void written(std::size_t also = 0) {
    box_.written();
    charge(also);
    recount();
  }

  /// False if more waits than may.
  bool charge(std::size_t also) {
    constexpr std::size_t step = 64u << 10; // most connections never ask
    if (!waits_) return true;
    const auto waiting = box_.bytes() + also;
    const auto counted = waiting <= uncounted ? 0 : (waiting - uncounted + step - 1) / step * step;
    waits_->shrink_to(counted);
    return waits_->grow_to(counted);
  }

  /// Drops everything and takes nothing more.
  void end() {
    box_ = outbox_of<Item>(0);
    box_.close(0, {});
    waits_.reset();
    recount();
  }

private:
  void recount() {
    const auto now = static_cast<std::int64_t>(box_.bytes());
    all_bytes_->fetch_add(now - counted_bytes_, std::memory_order_relaxed);
    counted_bytes_ = now;
  }

  outbox_of<Item> box_;
  std::optional<base::byte_budget::share> waits_;
  std::shared_ptr<std::atomic<std::int64_t>> all_bytes_;
  std::int64_t counted_bytes_ = 0; ///< this one's part of the sum
};

} // namespace parley::net
