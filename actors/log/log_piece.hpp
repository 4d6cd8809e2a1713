#pragma once

#include "actors/log/log_owner.hpp"
#include "protocol/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>

// What gateways tell one another of the logs that they copy.
namespace parley::actors {

/// How many bytes of logs may be under way to another gateway, and in one piece.
inline constexpr std::size_t most_unconfirmed = std::size_t{8} << 20;
inline constexpr std::size_t largest_piece = std::size_t{256} << 10;

/// The longest log that is sent to another gateway, or taken up.
inline constexpr std::size_t longest_log = std::size_t{1} << 30;

/// Bytes of a log, which follow those before; offset 0 begins it anew.
struct log_piece {
  session_name session;
  std::uint64_t epoch = 0;
  std::uint64_t offset = 0;
  std::string bytes;
  bool over = false; ///< instead: the session has ended, and its copy with it
};

/// Whether a gateway can have sent this.
inline bool plausible(const log_piece& of) {
  constexpr std::uint64_t farthest = std::uint64_t{1} << 40;
  return protocol::is_session_id(of.session.id) && of.bytes.size() <= largest_piece && of.offset <= farthest;
}

/// The bytes have arrived: they are written, or a `log_refused` was sent before this.
struct piece_taken {
  std::uint64_t bytes = 0;
};

/// The log is not taken: the session has a newer owner, or `newer` is absent (epoch 0) and the disk refuses.
struct log_refused {
  session_name session;
  log_owner newer;
};

using piece_answer = std::variant<piece_taken, log_refused>;
using piece_replier = std::function<void(piece_answer)>;

} // namespace parley::actors
