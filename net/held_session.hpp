#pragma once

#include "actors/front_door.hpp"
#include "net/admission.hpp"
#include "net/beast.hpp"
#include "net/connections.hpp"
#include "net/service.hpp"
#include "net/session_link.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace parley::net {

/// What a connection with a session behind it holds, from the upgrade or the request on until it lets go.
struct held_session {
  std::optional<connections::place> place;
  std::shared_ptr<admission::pass> pass; ///< its session may hold it too
  std::shared_ptr<session_link> link = nullptr;
  std::unique_ptr<actors::session_inbox> inbox = nullptr;

  /// `owner`'s place, and a link that calls its `on_ring` on `strand`.
  template<class Connection>
  void take_over(std::weak_ptr<Connection> owner, const asio::any_io_executor& strand, const connection_limits& limits,
                 service& shared) {
    place->move_to(owner);
    link = std::make_shared<session_link>(limits, shared.counted.outbox_bytes(), [owner = std::move(owner), strand] {
      asio::post(strand, [owner] {
        if (const auto live = owner.lock()) live->on_ring();
      });
    });
  }

  /// The socket is gone.
  void let_go() {
    if (link) link->detach();
    if (inbox) inbox->gone();
    inbox.reset();
    pass.reset();
    place.reset();
  }
};

} // namespace parley::net
