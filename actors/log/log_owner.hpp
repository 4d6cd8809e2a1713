#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace parley::actors {

/// Which gateway a session belongs to: the one that took it up last. Of two that took up the same log, the higher number
/// wins, so that both come to the same answer. Pure.
struct log_owner {
  std::uint64_t epoch = 0; ///< how often the session was taken up
  std::uint64_t node = 0;  ///< random number of the gateway's process

  auto operator<=>(const log_owner&) const = default;
};

/// A session. Its client may have chosen the id and use it again, so the id alone is not enough.
struct session_name {
  std::string id;
  std::uint64_t birth = 0; ///< random: `logged::beginning::id_seed`

  auto operator<=>(const session_name&) const = default;
};

} // namespace parley::actors
