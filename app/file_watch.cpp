#include "app/file_watch.hpp"

#include <spdlog/spdlog.h>

#include <exception>
#include <sys/stat.h>
#include <utility>

namespace parley::app {
namespace {

std::string looks_of(const std::vector<std::filesystem::path>& files) {
  std::string looks;
  for (const auto& file : files) {
    struct stat is {};
    if (file.empty() || ::stat(file.c_str(), &is) != 0) {
      looks += "-;";
      continue;
    }
    for (const auto number : {static_cast<std::int64_t>(is.st_dev), static_cast<std::int64_t>(is.st_ino),
                              static_cast<std::int64_t>(is.st_size), static_cast<std::int64_t>(is.st_mtim.tv_sec),
                              static_cast<std::int64_t>(is.st_mtim.tv_nsec)})
      looks += std::to_string(number) + ",";
    looks += ';';
  }
  return looks;
}

} // namespace

file_watch::file_watch(std::vector<std::filesystem::path> files, std::chrono::milliseconds every,
                       std::function<void()> changed)
    : files_(std::move(files)), every_(every), changed_(std::move(changed)), seen_(looks_of(files_)) {
  if (every_.count() > 0) thread_ = std::thread([this] { watch(); });
}

file_watch::~file_watch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ends_.notify_all();
  thread_.join();
}

void file_watch::watch() noexcept {
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, every_, [this] { return ending_; })) {
    try {
      auto looks = looks_of(files_);
      if (looks == seen_) continue;
      seen_ = std::move(looks);
      changed_();
    } catch (const std::exception& problem) {
      spdlog::error("files are not watched for a moment: {}", problem.what());
    }
  }
}

} // namespace parley::app
