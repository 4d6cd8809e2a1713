#include "inference/engine/helper_threads.hpp"

#include <algorithm>
#include <sys/resource.h>
#include <unistd.h>

namespace parley::inference {

void lower_thread_priority() {
  constexpr int nicer = 5; // beside a thread that works, a quarter of a core's time
  const auto self = static_cast<id_t>(::gettid());
  ::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + nicer);
}

helper_threads::helper_threads(int threads, std::size_t bound) : bound_(bound) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

helper_threads::~helper_threads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& t : threads_) t.join();
}

bool helper_threads::take(const std::shared_ptr<helper_job>& fresh) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_ >= bound_) return false;
    auto of = std::ranges::find(lines_, fresh->owner, &line::owner);
    if (of == lines_.end()) of = lines_.insert(lines_.end(), line{fresh->owner, {}});
    of->jobs.push_back(fresh);
    ++waiting_;
  }
  wake_.notify_one();
  return true;
}

void helper_threads::wait(std::uint64_t counted, std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  one_done_.wait_for(lock, most, [&] { return finished_ != counted; });
}

std::list<helper_threads::line>::iterator helper_threads::free_line() {
  return std::ranges::find_if(lines_, [](const line& of) { return !of.busy; });
}

void helper_threads::work() {
  lower_thread_priority();
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || free_line() != lines_.end(); });
    if (stopping_) return;
    const auto turn = free_line();
    lines_.splice(lines_.end(), lines_, turn); // other sessions are next
    if (turn->jobs.empty()) {                  // happens only if there was no memory for its job
      lines_.erase(turn);
      continue;
    }
    turn->busy = true;
    auto job = turn->jobs.front().lock();
    lock.unlock();
    const auto over = !job || job->work([&job] { return job.use_count() > 1; });
    if (over && job) job->done = true;
    const auto was_wanted = job != nullptr;
    job.reset();
    lock.lock();
    turn->busy = false;
    if (over) {
      turn->jobs.pop_front();
      --waiting_;
      if (turn->jobs.empty()) lines_.erase(turn);
    }
    if (over && was_wanted) {
      ++finished_;
      one_done_.notify_one();
    }
    wake_.notify_one(); // this session's next job may start
  }
}

} // namespace parley::inference
