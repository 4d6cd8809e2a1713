#include "app/node_settings.hpp"

#include "net/cluster/node_dialer.hpp"

#include <array>
#include <memory>
#include <sstream>
#include <unistd.h>
#include <utility>

namespace parley::app {

std::string node_name(const config::settings& settings) {
  if (!settings.nodes.name.empty()) return settings.nodes.name;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return "node";
  return host.data();
}

std::vector<actors::node_dialer> dialers_of(const config::settings& settings, const std::string& addresses) {
  std::vector<actors::node_dialer> dialers;
  std::istringstream words(addresses);
  for (std::string address; words >> address;)
    dialers.push_back(
        [dialer = std::make_shared<net::node_dialer>(settings, address)](auto done) { dialer->dial(std::move(done)); });
  return dialers;
}

} // namespace parley::app
