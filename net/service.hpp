#pragma once

#include "actors/front_door.hpp"
#include "net/connections.hpp"
#include "net/gate.hpp"
#include "net/limits.hpp"
#include "net/meters.hpp"
#include "net/router.hpp"

#include <boost/asio/ssl/context.hpp>

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
};

} // namespace parley::net
