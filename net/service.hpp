#pragma once

#include "actors/gateway_api.hpp"
#include "base/byte_budget.hpp"
#include "base/current.hpp"
#include "base/log_throttle.hpp"
#include "config/settings.hpp"
#include "net/access/access_control.hpp"
#include "net/access/peer.hpp"
#include "net/call_acceptor.hpp"
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
#include <utility>

namespace parley::net {

/// Why the sessions of a key end that is not listed any more; their clients are told.
inline constexpr const char* key_removed = "key_removed";

/// What all connections of a server share.
struct service {
  connection_limits limits;
  config::openai_door openai;
  actors::gateway_api& core;
  access_control entrance;
  trusted_proxies proxies;
  base::current<boost::asio::ssl::context> tls; ///< of new connections; null = plain text
  meters counted;
  router routes;
  connections all;
  base::byte_budget received; ///< large messages and bodies that nobody has taken yet
  base::byte_budget answers;  ///< that wait for their readers
  base::byte_budget waiting;  ///< small messages that no session has taken yet, and frames that no client has read
  base::log_throttle refused_pages{std::chrono::minutes(1)};
  base::log_throttle refusals{std::chrono::minutes(1), 20};
  boost::asio::thread_pool body_readers{1}; ///< reads bodies that would block an I/O thread
  std::unique_ptr<call_acceptor> calls{};   ///< null = there is no WebRTC

  /// Begins what a client was let in for. Its key may have been removed since then.
  std::unique_ptr<actors::session_handle> admit(actors::connection_info info,
                                                std::shared_ptr<actors::client_link> link) {
    const std::string key = info.key;
    auto handle = core.admit(std::move(info), std::move(link));
    close_if_removed(key);
    return handle;
  }
  std::unique_ptr<actors::guest_handle> admit_guest(actors::connection_info info,
                                                    std::shared_ptr<actors::guest_link> link) {
    const std::string key = info.key;
    auto handle = core.admit_guest(std::move(info), std::move(link));
    close_if_removed(key);
    return handle;
  }

  /// Whether a message or a body that is being received may have this many bytes. `held`: its share, which exists once it
  /// is large.
  bool has_room(std::optional<base::byte_budget::share>& held, const std::string& owner, std::size_t bytes) const {
    if (bytes <= frame_buffer::trusted) return true;
    if (!held) held = received.open(owner);
    return held->grow_to(bytes);
  }

private:
  void close_if_removed(const std::string& key) {
    if (!entrance.still_lists(key)) core.close_sessions_of(key, key_removed);
  }
};

} // namespace parley::net
