#pragma once

#include "actors/durable/log_owner.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

// What gateways tell one another of the logs that they copy.
namespace parley::actors {

/// Bytes of a log, which follow those before; offset 0 begins it anew.
struct log_piece {
  session_name session;
  std::uint64_t epoch = 0;
  std::uint64_t offset = 0;
  std::string bytes;
  bool over = false; ///< instead: the session has ended, and its copy with it
};

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
