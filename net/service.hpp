#pragma once

#include "actors/gateway_api.hpp"
#include "base/byte_budget.hpp"
#include "base/log_throttle.hpp"
#include "config/settings.hpp"
#include "net/access/access_control.hpp"
#include "net/channel/frame_buffer.hpp"
#include "net/connections.hpp"
#include "net/limits.hpp"
#include "net/meters.hpp"
#include "net/routes/router.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace parley::net {

/// What all connections of a server share.
struct service {
  connection_limits limits;
  config::openai_door openai;
  actors::gateway_api& core;
  access_control entrance;
  std::shared_ptr<boost::asio::ssl::context> tls; ///< null = plain text
  meters counted;
  router routes;
  connections all;
  base::byte_budget received; ///< large messages and bodies that nobody has taken yet
  base::byte_budget answers;  ///< that wait for their readers
  base::byte_budget waiting;  ///< small messages that no session has taken yet, and frames that no client has read
  base::log_throttle refused_pages{std::chrono::minutes(1)};
  boost::asio::thread_pool body_readers{1}; ///< reads bodies that would block an I/O thread

  /// Whether a message or a body that is being received may have this many bytes. `held`: its share, which exists once it
  /// is large.
  bool has_room(std::optional<base::byte_budget::share>& held, const std::string& owner, std::size_t bytes) const {
    if (bytes <= frame_buffer::trusted) return true;
    if (!held) held = received.open(owner);
    return held->grow_to(bytes);
  }
};

} // namespace parley::net
