#pragma once

#include "actors/logger.hpp"
#include "base/restart_pause.hpp"

#include <caf/all.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace parley::actors {

/// An actor that is started again, after a pause, when it has ended although nobody wanted that, or could not be started
/// again. Thread-safe.
template<class Handle>
class restarted {
public:
  /// Starts it. `start` is called again on threads of the system, until `stop`.
  restarted(caf::actor_system& system, std::string name, std::function<Handle()> start)
      : state_(std::make_shared<state>(system, std::move(name), std::move(start))) {
    state_->begin();
  }
  ~restarted() { stop(); }
  restarted(const restarted&) = delete;
  restarted& operator=(const restarted&) = delete;

  /// The one that runs now; null during a pause.
  Handle get() const {
    const std::lock_guard lock(state_->mutex);
    return state_->now;
  }

  /// Ends it for good.
  void stop() { state_->stop(); }

private:
  using clock = std::chrono::steady_clock;

  struct state : std::enable_shared_from_this<state> {
    state(caf::actor_system& in, std::string called, std::function<Handle()> how)
        : system(in), name(std::move(called)), start(std::move(how)) {}

    void begin() {
      Handle fresh;
      {
        const std::lock_guard lock(mutex);
        waiter = nullptr;
        if (stopped) return;
        began = clock::now();
        fresh = now = start();
      }
      fresh->attach_functor([self = this->shared_from_this()](const caf::error& why) { self->ended(why); });
    }

    void ended(const caf::error& why) {
      const std::lock_guard lock(mutex);
      now = nullptr;
      if (stopped) return;
      const auto pause = pauses.after(clock::now() - began);
      log()->error("{} has ended: {}; it starts again in {} s", name, system.render(why), pause.count());
      waiter = system.spawn(
          [](caf::event_based_actor* self, const std::shared_ptr<state>& of,
             std::chrono::seconds wait) -> caf::behavior {
            self->delayed_send(self, wait, caf::tick_atom_v);
            return {[self, of](caf::tick_atom) {
              try {
                of->begin();
              } catch (const std::exception& problem) {
                of->ended(caf::make_error(caf::sec::runtime_error, std::string(problem.what())));
              }
              self->quit();
            }};
          },
          this->shared_from_this(), pause);
    }

    void stop() {
      const std::lock_guard lock(mutex);
      stopped = true;
      if (now) caf::anon_send_exit(now, caf::exit_reason::user_shutdown);
      if (waiter) caf::anon_send_exit(waiter, caf::exit_reason::user_shutdown);
      now = nullptr;
      waiter = nullptr;
      start = nullptr;
    }

    caf::actor_system& system;
    const std::string name;
    std::mutex mutex;
    std::function<Handle()> start;
    Handle now;
    caf::actor waiter; ///< for the end of the pause
    base::restart_pause pauses;
    clock::time_point began;
    bool stopped = false;
  };

  const std::shared_ptr<state> state_;
};

} // namespace parley::actors
