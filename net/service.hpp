#pragma once

#include "actors/front_door.hpp"
#include "net/connections.hpp"
#include "net/gate.hpp"
#include "net/limits.hpp"
#include "net/log_throttle.hpp"
#include "net/meters.hpp"
#include "net/router.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <memory>

namespace parley::net {

/// What all connections of a server share.
struct service {
  connection_limits limits;
  actors::front_door& door;
  gate entrance;
  std::shared_ptr<boost::asio::ssl::context> tls; ///< null = plain text
  meters counted;
  router routes;
  connections all;
  log_throttle refused_pages{std::chrono::minutes(1)};
  boost::asio::thread_pool body_readers{1}; ///< reads bodies that would hold an I/O thread up
};

} // namespace parley::net
