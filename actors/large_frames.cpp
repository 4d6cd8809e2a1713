#include "actors/large_frames.hpp"

#include "actors/logger.hpp"

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace parley::actors {
namespace {

bool& on_such_thread() {
  thread_local bool here = false;
  return here;
}

} // namespace

struct large_frames::queue {
  struct owner {
    std::deque<std::shared_ptr<strand>> ready; ///< with frames, and none at work
    bool at_work = false;
  };
  struct job {
    task work;
    std::shared_ptr<strand> of;
  };

  void add(const std::shared_ptr<strand>& to, task work, bool first) {
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
      ++to->unfinished_;
      first ? to->waiting_.push_front(std::move(work)) : to->waiting_.push_back(std::move(work));
      if (!to->at_work_ && to->waiting_.size() == 1) make_ready(to);
    }
    changed.notify_one();
  }

  void finished(const std::shared_ptr<strand>& one) {
    std::deque<task> dropped;
    {
      const std::lock_guard lock(mutex);
      --one->unfinished_;
      one->at_work_ = false;
      if (stopping) return dropped.swap(one->waiting_);
      auto& of = owners[one->owner_];
      of.at_work = false;
      if (!one->waiting_.empty()) of.ready.push_back(one);
      if (of.ready.empty())
        owners.erase(one->owner_);
      else
        order.push_back(one->owner_);
    }
    changed.notify_one();
  }

  /// Nothing = it has been stopped.
  std::optional<job> next() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return stopping || !order.empty(); });
    if (stopping) return std::nullopt;
    auto& of = owners[order.front()];
    order.pop_front();
    of.at_work = true;
    job out{{}, std::move(of.ready.front())};
    of.ready.pop_front();
    out.of->at_work_ = true;
    out.work = std::move(out.of->waiting_.front());
    out.of->waiting_.pop_front();
    return out;
  }

  void stop() {
    std::vector<std::deque<task>> dropped; // outside of the lock: they may hold the last of something
    {
      const std::lock_guard lock(mutex);
      stopping = true;
      for (auto& [name, of] : owners)
        for (auto& one : of.ready) dropped.emplace_back().swap(one->waiting_);
      owners.clear();
      order.clear();
    }
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, owner> owners; ///< with frames that wait or are at work
  std::deque<std::string> order;       ///< owners with a strand that is ready, and none at work
  bool stopping = false;

private:
  void make_ready(const std::shared_ptr<strand>& one) {
    auto& of = owners[one->owner_];
    of.ready.push_back(one);
    if (!of.at_work && of.ready.size() == 1) order.push_back(one->owner_);
  }
};

class large_frames::turn {
public:
  explicit turn(std::shared_ptr<strand> of) : strand_(std::move(of)) {}
  ~turn() { strand_->queue_->finished(strand_); }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;

  const std::shared_ptr<strand>& of() const { return strand_; }

private:
  const std::shared_ptr<strand> strand_;
};

large_frames::large_frames(std::size_t threads) : queue_(std::make_shared<queue>()) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

large_frames::~large_frames() {
  stop();
}

void large_frames::stop() {
  queue_->stop();
  for (auto& each : threads_) each.join();
  threads_.clear();
}

void large_frames::add(const std::shared_ptr<strand>& to, task work) {
  to->queue_->add(to, std::move(work), false);
}

void large_frames::again(std::shared_ptr<turn>&& instead_of, task work) {
  const auto ends = std::move(instead_of);
  const auto& to = ends->of();
  to->queue_->add(to, std::move(work), true); // it is at work until the turn ends, which is now
}

bool large_frames::here() {
  return on_such_thread();
}

void large_frames::work() const {
  on_such_thread() = true;
  for (;;) {
    const auto next = queue_->next();
    if (!next) return;
    auto mine = std::make_shared<turn>(next->of);
    try {
      next->work(std::move(mine));
    } catch (const std::exception& problem) {
      log()->error("a large frame: {}", problem.what());
    } catch (...) {
      log()->error("a large frame: unknown exception");
    }
  }
}

} // namespace parley::actors
