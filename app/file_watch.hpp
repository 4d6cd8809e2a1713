#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace parley::app {

/// While it lives, calls `changed` when one of the files is not the one that it was: another one, larger or smaller, or
/// written since. Looks every so often, on a thread of its own; links are followed. With a period of 0 it does nothing.
class file_watch {
public:
  file_watch(std::vector<std::filesystem::path> files, std::chrono::milliseconds every, std::function<void()> changed);
  ~file_watch();

  file_watch(const file_watch&) = delete;
  file_watch& operator=(const file_watch&) = delete;

private:
  void watch() noexcept;

  const std::vector<std::filesystem::path> files_;
  const std::chrono::milliseconds every_;
  const std::function<void()> changed_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ending_ = false;
  std::string seen_; ///< what the files were, last time
  std::thread thread_;
};

} // namespace parley::app
