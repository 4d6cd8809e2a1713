#pragma once

#include "net/beast.hpp"
#include "net/logger.hpp"

#include <exception>
#include <string_view>

namespace parley::net {

/// Runs `io` until it is stopped or has nothing left to do. A handler that throws is logged, and the others continue.
/// `whose` names the thread in the log.
inline void run_guarded(asio::io_context& io, std::string_view whose) {
  for (;;) {
    try {
      io.run();
      return;
    } catch (const std::exception& error) {
      log()->error("{} failed: {}", whose, error.what());
    }
  }
}

} // namespace parley::net
