#include "actors/execution.hpp"

#include <caf/scheduler/abstract_coordinator.hpp>

namespace parley::actors {
namespace {

constexpr std::size_t most_runs = 64; ///< of actors, for one message from outside

} // namespace

caf::execution_unit*& current_unit() {
  thread_local caf::execution_unit* unit = nullptr;
  return unit;
}

borrowed_thread::~borrowed_thread() {
  for (auto* const job : jobs_) system().scheduler().enqueue(job);
}

void borrowed_thread::run() {
  for (std::size_t runs = 0; !jobs_.empty() && runs < most_runs; ++runs) {
    auto* const job = jobs_.front();
    jobs_.pop_front();
    switch (job->resume(this, messages_at_once)) {
    case caf::resumable::resume_later: system().scheduler().enqueue(job); break;
    case caf::resumable::done:
    case caf::resumable::awaiting_message: caf::intrusive_ptr_release(job); break;
    case caf::resumable::shutdown_execution_unit: break;
    }
  }
}

} // namespace parley::actors
