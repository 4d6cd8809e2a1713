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

  enum class standing : std::uint8_t { owner, unknown, forbidden };

  /// What a call is to this client. Its owner is the API key that it belongs to, and every admin.
  virtual standing of(const std::string& id, const actors::principal& who) = 0;

  /// Ends a call, if there is one.
  virtual void hang_up(const std::string& id) = 0;

  /// From now on a second connection hears and says what the client of the call does, apart from sound. The call may have ended.
  virtual std::unique_ptr<actors::session_handle> follow(const std::string& id,
                                                         std::shared_ptr<actors::client_link> link) = 0;

  /// No more calls begin. Before the last thread that runs them ends.
  virtual void stop() = 0;
};

} // namespace parley::net
