#pragma once

#include "actors/execution.hpp"
#include "actors/gateway_api.hpp"
#include "actors/large_frames.hpp"
#include "actors/logger.hpp"
#include "actors/messages.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace parley::actors {

/// What it says is worked on where it says it; a turn that is large is made on threads of their own, and then all that follows
/// keeps its order behind it.
class event_handle final : public guest_handle {
public:
  event_handle(session_actor session, std::shared_ptr<large_frames::strand> strand)
      : session_(std::move(session)), strand_(std::move(strand)) {}

  void say(protocol::client_event&& event) override {
    if (strand_->idle()) return pass_here(session_, guest_said{std::move(event), nullptr});
    large_frames::add(strand_, [to = session_, event = std::move(event)](auto turn) mutable {
      pass_here(to, guest_said{std::move(event), std::move(turn)});
    });
  }

  void ask(const std::shared_ptr<const protocol::guest::deferred_turn>& what) override {
    if (strand_->idle() && !what->holds_files() && what->bytes() <= small_message_bytes)
      return make_and_say(session_, *what, nullptr);
    large_frames::add(strand_, [to = session_, asked = std::weak_ptr(what)](auto turn) {
      if (const auto wanted = asked.lock()) make_and_say(to, *wanted, std::move(turn));
    });
  }

  void gone() override {
    if (strand_->idle()) return caf::anon_send(session_, client_gone{});
    large_frames::add(strand_, [to = session_](const auto&) { caf::anon_send(to, client_gone{}); });
  }

private:
  using turn_at_work = std::shared_ptr<large_frames::turn>;

  /// A turn that cannot be made at all ends its session, and nothing else.
  static void make_and_say(const session_actor& to, const protocol::guest::deferred_turn& what, turn_at_work turn) {
    try {
      pass_here(to, guest_said{made(what), std::move(turn)});
    } catch (const std::exception& problem) {
      log()->error("a turn could not be made: {}", problem.what());
      caf::anon_send(to, session_fault{});
    }
  }

  static protocol::result<protocol::client_event> made(const protocol::guest::deferred_turn& turn) {
    auto event = turn.make();
    if (!event) return tl::unexpected(std::move(event.error()));
    return *std::move(event);
  }

  const session_actor session_;
  const std::shared_ptr<large_frames::strand> strand_;
};

/// Opens one (server_core::admit_guest).
using guest_opener = std::function<std::unique_ptr<guest_handle>(connection_info, std::shared_ptr<guest_link>)>;

} // namespace parley::actors
