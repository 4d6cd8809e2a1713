#pragma once

#include "actors/gateway_api.hpp"
#include "base/byte_budget.hpp"
#include "net/channel/counted_outbox.hpp"
#include "net/channel/doorbell.hpp"
#include "net/limits.hpp"
#include "protocol/events.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace parley::net {

/// The session's end of a connection whose client is answered in another language than the session's: a completion. It may
/// outlive the connection, and then does nothing. The functions of `guest_link` may be called from any thread.
class event_channel final : public actors::guest_link {
public:
  /// As of `client_channel`.
  event_channel(const connection_limits& limits, std::shared_ptr<std::atomic<std::int64_t>> outbox_bytes,
                std::function<void()> ring, std::optional<base::byte_budget::share> waits = {});

  void hand_over(protocol::server_event&& event) override;
  void close(std::uint16_t code, std::string reason) override;

  // ---- for the connection's strand ----

  struct work {
    std::optional<protocol::server_event> event; ///< answer it, then call `written`
    std::optional<close_frame> close;            ///< that was all
  };

  /// What to do now. Also answers the bell.
  work next();

  /// Call when the answer to the event that `next` returned is written.
  void written();

  /// The session is no longer heard: drops what is queued and silences the bell.
  void detach();

private:
  doorbell bell_;
  std::mutex mutex_;
  counted_outbox<protocol::server_event> outbox_;
};

} // namespace parley::net
