#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace parley::app {

/// The variable in which a child finds its command's secret. Variables that begin with PARLEY_ are settings.
inline constexpr const char* secret_variable = "SECRET_OF_PARLEY_NODES";

/// Child processes of this program that are kept running: each is started again when it ends, after a pause. They end
/// with this process, however it ends, and do not get the signals of its terminal.
class worker_processes {
public:
  struct command {
    std::string name;                   ///< for the log
    std::vector<std::string> arguments; ///< of this program
    std::string secret{};               ///< for its environment, where only processes of the same user see it
  };

  /// Starts them all. `ended` is called with the number of a command whose process has ended by itself: on one of our
  /// threads, but never twice at a time; it must not block.
  worker_processes(std::vector<command> commands, std::chrono::seconds patience,
                   std::function<void(std::size_t)> ended);

  /// Asks each to end (SIGTERM), and kills those that have not after `patience`. Blocks.
  ~worker_processes();

  worker_processes(const worker_processes&) = delete;
  worker_processes& operator=(const worker_processes&) = delete;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace parley::app
