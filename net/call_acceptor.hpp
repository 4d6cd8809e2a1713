#pragma once

#include "actors/gateway_api.hpp"
#include "actors/principal.hpp"
#include "net/access/admission.hpp"
#include "protocol/call/offer.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace parley::net {

struct http_reply;

/// A server's calls, as those see them who answer requests (`POST /v1/realtime/calls`). Thread-safe; nothing here blocks.
class call_acceptor {
public:
  virtual ~call_acceptor() = default;

  /// Begins a call of a client that has been let in, and answers its request: 201 with the answer, or why there is no call.
  virtual void accept(protocol::call::offer offer, actors::connection_info info,
                      std::shared_ptr<admission::reservation> reservation, std::function<void(http_reply)> respond) = 0;

  enum class end_answer : std::uint8_t { ended, unknown, forbidden };

  /// Ends a call, for who may.
  virtual end_answer hang_up(const std::string& id, const actors::principal& who) = 0;

  /// No more calls begin. Before the last thread that runs them ends.
  virtual void stop() = 0;
};

} // namespace parley::net
