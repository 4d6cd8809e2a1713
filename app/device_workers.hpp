#pragma once

#include "actors/server_core.hpp"
#include "app/service.hpp"
#include "app/service_news.hpp"
#include "app/worker_processes.hpp"
#include "net/cluster/node_listener.hpp"

#include <optional>
#include <string>
#include <vector>

namespace parley::app {

/// A worker process for each of several devices of this machine. They join this process on the loopback interface, as
/// workers join a gateway, with the flags that this process was given.
class device_workers {
public:
  /// Tells `news` once of each worker that ends by itself. The references must outlive this. Throws like
  /// `net::node_listener`.
  device_workers(const service_flags& flags, const config::settings& settings, const std::vector<std::string>& devices,
                 actors::server_core& core, service_news& news);

private:
  const std::string secret_; ///< that its workers show
  net::node_listener nodes_;
  std::vector<bool> ended_; ///< by device
  std::optional<worker_processes> processes_;
};

} // namespace parley::app
