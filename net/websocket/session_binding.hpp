#pragma once

#include "base/assert.hpp"
#include "net/access/admission.hpp"
#include "net/beast.hpp"
#include "net/connections.hpp"
#include "net/service.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace parley::net {

/// What a connection with a session holds, from the upgrade or the request until it releases the session. `Channel`: the
/// session's end of the connection. `Handle`: the session as the connection sees it.
template<class Channel, class Handle>
struct session_binding {
  std::optional<connections::slot> slot;
  std::shared_ptr<admission::reservation> reservation; ///< may be held by its session too
  std::shared_ptr<Channel> link = nullptr;
  std::unique_ptr<Handle> handle = nullptr;

  /// Moves the connection's slot to `owner`, whose client has this name in budgets, and creates a link that calls its `on_ring` on `strand`.
  /// `more`: what else this kind of link takes.
  template<class Connection, class... More>
  void take_over(std::weak_ptr<Connection> owner, const asio::any_io_executor& strand, const connection_limits& limits,
                 service& shared, std::string name, More&&... more) {
    PARLEY_ASSERT(slot, "taken over once");
    slot->move_to_session(owner);
    link = std::make_shared<Channel>(
        limits, shared.counted.outbox_bytes(),
        [owner = std::move(owner), strand] {
          asio::post(strand, [owner] {
            if (const auto live = owner.lock()) live->on_ring();
          });
        },
        shared.waiting.open(std::move(name)), std::forward<More>(more)...);
  }

  /// Nothing that the session says is heard any more.
  void drop_session() {
    if (link) link->detach();
    if (handle) handle->gone();
    handle.reset();
  }

  /// Releases the session, while the socket stays with `owner`.
  template<class Connection>
  void end_session(std::weak_ptr<Connection> owner) {
    release();
    PARLEY_ASSERT(slot, "a connection that is still there");
    slot->move_to(std::move(owner));
  }

  /// Releases everything when the socket is gone.
  void let_go() {
    release();
    slot.reset();
  }

private:
  void release() {
    drop_session();
    reservation.reset();
  }
};

} // namespace parley::net
