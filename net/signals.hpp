#pragma once

#include <functional>
#include <memory>

namespace parley::net {

/// Calls `on_signal` for every SIGINT and SIGTERM while it lives, on a thread of its own, with the signal's number.
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
