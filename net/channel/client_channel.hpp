#pragma once

#include "actors/gateway_api.hpp"
#include "base/byte_budget.hpp"
#include "net/channel/counted_outbox.hpp"
#include "net/channel/doorbell.hpp"
#include "net/channel/read_credit.hpp"
#include "net/limits.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace parley::net {

/// The session's end of a WebSocket connection. It may outlive the connection, and then does nothing. The functions of
/// `client_link` may be called from any thread.
class client_channel : public actors::client_link {
public:
  /// `ring` passes work to the connection's strand. `outbox_bytes` is the sum over all links. `waits`: for what waits, frames
  /// for a slow reader and small messages for a busy session (`counted_outbox`).
  client_channel(const connection_limits& limits, std::shared_ptr<std::atomic<std::int64_t>> outbox_bytes,
                 std::function<void()> ring, std::optional<base::byte_budget::share> waits = {});

  void send(std::shared_ptr<const std::string> frame) override;
  void close(std::uint16_t code, std::string reason) override;
  void taken(std::size_t bytes) override;
  void became_chat() override;

  // ---- for the connection's strand ----

  struct work {
    text_frame write;                 ///< write this frame, then call `written`; null = none
    std::optional<close_frame> close; ///< everything is written: start the closing handshake
    bool closing = false;             ///< a close was requested, so input is no longer used
    bool may_read = false;
    bool chat = false; ///< chat's message limit applies
  };

  /// What to do now. Also answers the bell.
  work next();

  /// Call when the last write returned by `next` is done.
  void written();

  /// Counts a message of that size passed to the session, which holds its share until the session takes it. False: pass no
  /// further one for now.
  bool spend(std::size_t bytes, std::optional<base::byte_budget::share> held = {});

  /// The socket is gone: drops what is queued and silences the bell.
  void detach();

private:
  std::size_t small_held_bytes() const;

  doorbell bell_;
  std::mutex mutex_;
  counted_outbox<text_frame> outbox_;
  read_credit credit_;
  std::deque<std::pair<std::size_t, base::byte_budget::share>> held_; ///< large messages that the session has not taken
  std::size_t held_large_bytes_ = 0;                                  ///< of these
  bool chat_ = false;
};

} // namespace parley::net
