#pragma once

#include "actors/execution.hpp"
#include "actors/gateway_api.hpp"
#include "protocol/events.hpp"

#include <caf/all.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

// How a session reaches a guest that is another actor of the server.
namespace parley::actors {

/// An event of the session that the actor opened as number `number`.
struct guest_event {
  std::uint64_t number = 0;
  protocol::server_event event;
};

/// That session has closed.
struct guest_closed {
  std::uint64_t number = 0;
};

/// To the actor that opened the session.
template<class Actor>
class guest_mailbox final : public guest_link {
public:
  guest_mailbox(Actor to, std::uint64_t number) : to_(std::move(to)), number_(number) {}
  void hand_over(protocol::server_event&& event) override { pass(to_, guest_event{number_, std::move(event)}); }
  void close(std::uint16_t, std::string) override { pass(to_, guest_closed{number_}); }

private:
  const Actor to_;
  const std::uint64_t number_;
};

} // namespace parley::actors

// These never leave their process.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::guest_event)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::guest_closed)
