#pragma once

#include "actors/execution.hpp"
#include "actors/guest/guest_link.hpp"
#include "actors/large_frames.hpp"
#include "actors/messages.hpp"
#include "protocol/guest/effects.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace parley::actors {

/// A session as a client inside the process sees it. What it says is worked on where it says it; a turn that is large is made
/// on threads of their own, and then all that follows keeps its order behind it.
class guest_handle {
public:
  guest_handle(session_actor session, std::shared_ptr<large_frames::lane> lane)
      : session_(std::move(session)), lane_(std::move(lane)) {}

  void say(protocol::client_event&& event) {
    if (lane_->idle()) return pass_here(session_, guest_said{std::move(event), nullptr});
    large_frames::add(lane_, [to = session_, event = std::move(event)](auto turn) mutable {
      pass_here(to, guest_said{std::move(event), std::move(turn)});
    });
  }

  /// If the turn has gone when it would be made, nobody wants it any more.
  void ask(const std::shared_ptr<const protocol::guest::deferred_turn>& what) {
    if (lane_->idle() && what->bytes() <= small_message_bytes)
      return pass_here(session_, guest_said{made(*what), nullptr});
    large_frames::add(lane_, [to = session_, asked = std::weak_ptr(what)](auto turn) {
      const auto wanted = asked.lock();
      if (wanted) pass_here(to, guest_said{made(*wanted), std::move(turn)});
    });
  }

  /// Nothing that the session says is heard any more. Must be the last call.
  void gone() {
    if (lane_->idle()) return caf::anon_send(session_, client_gone{});
    large_frames::add(lane_, [to = session_](const auto&) { caf::anon_send(to, client_gone{}); });
  }

private:
  static protocol::result<protocol::client_event> made(const protocol::guest::deferred_turn& turn) {
    auto event = turn.make();
    if (!event) return tl::unexpected(std::move(event.error()));
    return *std::move(event);
  }

  const session_actor session_;
  const std::shared_ptr<large_frames::lane> lane_;
};

/// Opens one (server_core::admit_guest).
using guest_opener = std::function<std::unique_ptr<guest_handle>(connection_info, std::shared_ptr<guest_link>)>;

} // namespace parley::actors
