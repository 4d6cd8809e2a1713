#include "app/worker_processes.hpp"

#include "base/restart_pause.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace parley::app {

namespace {

using std::chrono::steady_clock;

constexpr int cannot_run = 127;

/// Between fork and exec only async-signal-safe calls are allowed: everything is prepared before.
[[noreturn]] void become(char* const* arguments, char* const* environment, pid_t parent) {
  ::setpgid(0, 0); // the terminal's signals are for the parent alone
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(cannot_run); // it ended before the line above
  ::close_range(STDERR_FILENO + 1, ~0U, 0);       // sockets of the parent among them
  ::execve("/proc/self/exe", arguments, environment);
  ::_exit(cannot_run);
}

std::string ending(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

} // namespace

class worker_processes::impl {
public:
  impl(std::vector<command> commands, std::chrono::seconds patience, std::function<void(std::size_t)> ended)
      : commands_(std::move(commands)), children_(commands_.size()), patience_(patience), ended_(std::move(ended)) {
    for (std::size_t i = 0; i < commands_.size(); ++i) threads_.emplace_back([this, i] { keep_on(i); });
  }

  ~impl() {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    signal_all(SIGTERM);
    changed_.notify_all();
    const auto none_left = [&] { return std::count(children_.begin(), children_.end(), 0) == std::ssize(children_); };
    if (!changed_.wait_for(lock, patience_, none_left)) signal_all(SIGKILL);
    lock.unlock();
    for (auto& thread : threads_) thread.join();
  }

private:
  void signal_all(int number) {
    for (const auto child : children_)
      if (child > 0) ::kill(child, number);
  }

  /// Where memory runs out, the child is tried again.
  void keep_on(std::size_t index) {
    while (true) {
      try {
        return keep_running(index);
      } catch (const std::exception& problem) {
        spdlog::error("a worker's process: {}", problem.what());
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, std::chrono::seconds(1), [&] { return stopping_; })) return;
      }
    }
  }

  /// Runs on the child's own thread, which lives as long as the child: the system signals a child when the thread that
  /// started it ends.
  void keep_running(std::size_t index) {
    base::restart_pause pause;
    const auto& name = commands_[index].name;
    while (true) {
      const auto begin = steady_clock::now();
      const auto child = start(index);
      if (child == 0) return;
      const auto how = child > 0 ? wait_for(child, index) : std::string("could not be started");
      std::unique_lock lock(mutex_);
      if (stopping_) return;
      const auto wait = pause.after(steady_clock::now() - begin);
      spdlog::warn("the worker on {} {}; it is started again in {} s", name, how, wait.count());
      ended_(index);
      if (changed_.wait_for(lock, wait, [&] { return stopping_; })) return;
    }
  }

  /// The process, 0 if none is wanted any more, -1 if there can be none.
  pid_t start(std::size_t index) {
    std::vector<std::string> words{"parley"};
    words.insert(words.end(), commands_[index].arguments.begin(), commands_[index].arguments.end());
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::string secret = std::string(secret_variable) + '=' + commands_[index].secret;
    std::vector<char*> environment{secret.data()};
    for (char** each = environ; *each != nullptr; ++each) environment.push_back(*each);
    environment.push_back(nullptr);
    const std::lock_guard lock(mutex_);
    if (stopping_) return 0;
    const auto parent = ::getpid();
    const auto child = ::fork();
    if (child == 0) become(arguments.data(), environment.data(), parent);
    if (child < 0) return child;
    children_[index] = child;
    spdlog::info("the worker on {} is process {}", commands_[index].name, child);
    return child;
  }

  /// How it ended. It is forgotten before its number can go to another process.
  std::string wait_for(pid_t child, std::size_t index) {
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    {
      const std::lock_guard lock(mutex_);
      children_[index] = 0;
    }
    changed_.notify_all();
    auto status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return ending(status);
  }

  const std::vector<command> commands_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<pid_t> children_; ///< 0 = not running
  bool stopping_ = false;
  const std::chrono::seconds patience_;
  const std::function<void(std::size_t)> ended_;
  std::vector<std::thread> threads_;
};

worker_processes::worker_processes(std::vector<command> commands, std::chrono::seconds patience,
                                   std::function<void(std::size_t)> ended)
    : impl_(std::make_unique<impl>(std::move(commands), patience, std::move(ended))) {}

worker_processes::~worker_processes() = default;

} // namespace parley::app
