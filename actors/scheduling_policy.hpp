#pragma once

#include <caf/policy/unprofiled.hpp>
#include <caf/resumable.hpp>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>

namespace parley::actors {

/// How scheduler threads share work: one queue, as in CAF's work sharing, but no thread is woken for work that an awake
/// one will take. When an actor sends work to another, its own thread continues with it as soon as that actor is done;
/// only additional work, or work from other threads, wakes a sleeping thread.
class scheduling_policy : public caf::policy::unprofiled {
public:
  struct coordinator_data {
    explicit coordinator_data(caf::scheduler::abstract_coordinator*) {}

    std::mutex mutex;
    std::condition_variable wake;
    std::deque<caf::resumable*> jobs;
  };

  struct worker_data {
    explicit worker_data(caf::scheduler::abstract_coordinator*) {}
  };

  template<class Coordinator>
  void central_enqueue(Coordinator* self, caf::resumable* job) {
    put(d(self), job);
    d(self).wake.notify_one();
  }

  template<class Worker>
  void external_enqueue(Worker* self, caf::resumable* job) {
    central_enqueue(self->parent(), job);
  }

  /// Called on the thread of `self`, which will come back for the job.
  template<class Worker>
  void internal_enqueue(Worker* self, caf::resumable* job) {
    auto& shared = d(self->parent());
    if (put(shared, job) > 1) shared.wake.notify_one();
  }

  template<class Worker>
  void resume_job_later(Worker* self, caf::resumable* job) {
    internal_enqueue(self, job);
  }

  template<class Worker>
  caf::resumable* dequeue(Worker* self) {
    auto& shared = d(self->parent());
    std::unique_lock lock(shared.mutex);
    shared.wake.wait(lock, [&] { return !shared.jobs.empty(); });
    auto* const job = shared.jobs.front();
    shared.jobs.pop_front();
    const bool more = !shared.jobs.empty();
    lock.unlock();
    if (more) shared.wake.notify_one();
    return job;
  }

  template<class Worker, class Function>
  void foreach_resumable(Worker*, Function) {}

  template<class Coordinator, class Function>
  void foreach_central_resumable(Coordinator* self, Function f) {
    const std::lock_guard lock(d(self).mutex);
    for (auto* job : d(self).jobs) f(job);
    d(self).jobs.clear();
  }

private:
  /// Adds a job; returns the number of jobs in the queue.
  static std::size_t put(coordinator_data& shared, caf::resumable* job) {
    const std::lock_guard lock(shared.mutex);
    shared.jobs.push_back(job);
    return shared.jobs.size();
  }
};

} // namespace parley::actors
