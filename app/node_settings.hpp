#pragma once

#include "actors/cluster/node_socket.hpp"
#include "config/settings.hpp"

#include <functional>
#include <string>
#include <vector>

namespace parley::app {

/// Setting `nodes.name`, or the machine's name.
std::string node_name(const config::settings& settings);

/// How nodes are called.
struct node_dialers {
  std::vector<actors::node_dialer> dial;
  std::vector<std::function<std::function<void()>()>> read_again; ///< as `net::node_dialer::read_again`, of each
};

/// One for each of the addresses, which are separated by spaces. \throws config::settings_error as `net::node_dialer`
node_dialers dialers_of(const config::settings& settings, const std::string& addresses);

} // namespace parley::app
