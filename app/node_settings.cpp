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
  std::vector<std::shared_ptr<net::node_dialer>> dialers;
  std::istringstream words(addresses);
  for (std::string address; words >> address;) dialers.push_back(std::make_shared<net::node_dialer>(settings, address));
  node_dialers out;
  for (const auto& dialer : dialers) out.dial.push_back([dialer](auto done) { dialer->dial(std::move(done)); });
  out.read_again = [dialers] {
    std::vector<std::function<void()>> effects;
    effects.reserve(dialers.size());
    for (const auto& dialer : dialers) effects.push_back(dialer->read_again());
    return [effects = std::move(effects)] {
      for (const auto& put_into_effect : effects) put_into_effect();
    };
  };
  return out;
}

} // namespace parley::app
