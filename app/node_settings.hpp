#pragma once

#include "actors/cluster/node_socket.hpp"
#include "config/settings.hpp"

#include <string>
#include <vector>

namespace parley::app {

/// Setting `nodes.name`, or the machine's name.
std::string node_name(const config::settings& settings);

/// One for each of the addresses, which are separated by spaces. \throws config::settings_error as `net::node_dialer`
std::vector<actors::node_dialer> dialers_of(const config::settings& settings, const std::string& addresses);

} // namespace parley::app
