#include "net/crowd.hpp"

#include <limits>

namespace parley::net {

crowd::rank crowd::rank_of(const members& of) {
  return {of.size(), std::numeric_limits<std::uint64_t>::max() - *of.begin()};
}

template<class Change>
void crowd::change(std::map<std::string, members>::iterator client, Change what) {
  members& of = client->second;
  if (!of.empty()) oldest_.erase(rank_of(of));
  what(of);
  if (of.empty()) {
    clients_.erase(client);
  } else {
    oldest_.emplace(rank_of(of), *of.begin());
  }
}

void crowd::add(std::uint64_t id, const std::string& client) {
  const auto whose = clients_.try_emplace(client).first;
  change(whose, [id](members& of) { of.insert(id); });
  clients_of_.emplace(id, whose);
}

void crowd::remove(std::uint64_t id) {
  const auto known = clients_of_.find(id);
  if (known == clients_of_.end()) return;
  change(known->second, [id](members& of) { of.erase(id); });
  clients_of_.erase(known);
}

std::optional<std::uint64_t> crowd::whom_to_drop() const {
  if (oldest_.empty()) return std::nullopt;
  return oldest_.rbegin()->second;
}

} // namespace parley::net
