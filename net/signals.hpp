#pragma once

#include <functional>
#include <memory>

namespace parley::net {

/// While it lives, calls `on_signal` with the number of every SIGINT and SIGTERM, on a thread of its own.
class stop_signals {
public:
  explicit stop_signals(std::function<void(int)> on_signal);
  ~stop_signals();

  stop_signals(const stop_signals&) = delete;
  stop_signals& operator=(const stop_signals&) = delete;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace parley::net
