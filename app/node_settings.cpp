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

node_dialers dialers_of(const config::settings& settings, const std::string& addresses) {
  node_dialers out;
  std::istringstream words(addresses);
  for (std::string address; words >> address;) {
    const auto dialer = std::make_shared<net::node_dialer>(settings, address);
    out.dial.push_back([dialer](auto done) { dialer->dial(std::move(done)); });
    out.read_again.push_back([dialer] { return dialer->read_again(); });
  }
  return out;
}

} // namespace parley::app
