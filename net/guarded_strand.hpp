#pragma once

#include "net/beast.hpp"
#include "net/connections.hpp"

#include <memory>
#include <type_traits>
#include <utility>

namespace parley::net {

/// The executor of one connection: a strand whose handlers may throw. What one throws, ours or one of Beast's own, is
/// logged and cuts the connection; nobody else notices. Small enough for Asio to hold it without allocating.
class guarded_strand {
public:
  /// `io` must outlive it. `owner`: the connection to cut.
  guarded_strand(asio::io_context& io, std::shared_ptr<const connection_owner> owner)
      : shared_(std::make_shared<const state>(state{asio::make_strand(io), std::move(owner)})) {}

  template<class Function>
  void execute(Function&& run) const {
    auto guarded = [run = std::forward<Function>(run), owner = shared_->owner]() mutable {
      try {
        run();
      } catch (...) {
        owner->failed();
      }
    };
    if (never_blocks_)
      return asio::require(shared_->strand, asio::execution::blocking.never).execute(std::move(guarded));
    shared_->strand.execute(std::move(guarded));
  }

  // What Asio requires of an executor.

  asio::execution_context& query(asio::execution::context_t) const noexcept {
    return shared_->strand.get_inner_executor().context();
  }
  asio::execution::blocking_t query(asio::execution::blocking_t) const noexcept {
    if (never_blocks_) return asio::execution::blocking.never;
    return asio::execution::blocking.possibly;
  }
  guarded_strand require(asio::execution::blocking_t::never_t) const noexcept { return {shared_, true}; }
  guarded_strand require(asio::execution::blocking_t::possibly_t) const noexcept { return {shared_, false}; }

  friend bool operator==(const guarded_strand&, const guarded_strand&) noexcept = default;

private:
  struct state {
    asio::strand<asio::io_context::executor_type> strand;
    std::shared_ptr<const connection_owner> owner;
  };

  guarded_strand(std::shared_ptr<const state> shared, bool never_blocks) noexcept
      : shared_(std::move(shared)), never_blocks_(never_blocks) {}

  std::shared_ptr<const state> shared_;
  bool never_blocks_ = false;
};

} // namespace parley::net
