#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace parley::net {

/// Connections of which one can be dropped for a new one, so that nobody crowds out others: the oldest of the client
/// that has most. Every call takes logarithmic time. Pure; not thread-safe.
class crowd {
public:
  /// `id`: larger than that of every older connection. `client`: to which limits apply.
  void add(std::uint64_t id, const std::string& client);

  /// Does nothing if it is not, or no longer, among them.
  void remove(std::uint64_t id);

  /// The one to drop: of several clients that have most, the oldest connection. Nothing if there are none.
  std::optional<std::uint64_t> whom_to_drop() const;

  std::size_t size() const { return clients_of_.size(); }

private:
  using members = std::set<std::uint64_t>;
  using rank = std::pair<std::size_t, std::uint64_t>; ///< how many, and larger for an older oldest one

  static rank rank_of(const members& of);
  template<class Change>
  void change(std::map<std::string, members>::iterator client, Change what);

  std::map<std::string, members> clients_;
  std::map<std::uint64_t, std::map<std::string, members>::iterator> clients_of_;
  std::map<rank, std::uint64_t> oldest_; ///< by rank: the oldest of each client
};

} // namespace parley::net
