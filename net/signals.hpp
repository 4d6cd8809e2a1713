#pragma once

#include <functional>
#include <memory>

namespace parley::net {

/// While it lives, calls `on_signal` with the number of every SIGHUP, SIGINT and SIGTERM, on a thread of its own.
class process_signals {
public:
  explicit process_signals(std::function<void(int)> on_signal);
  ~process_signals();

  process_signals(const process_signals&) = delete;
  process_signals& operator=(const process_signals&) = delete;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace parley::net
