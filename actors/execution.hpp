#pragma once

#include <caf/all.hpp>

#include <cstddef>
#include <deque>
#include <utility>

// Which thread runs an actor. Handing a message to another thread costs a wake-up, which takes longer than the work that most
// messages need. So that work, and what follows from it, stays on the thread where it arose, unless there is much of it.
namespace parley::actors {

/// How many messages an actor handles before others have their turn.
constexpr std::size_t messages_at_once = 16;

/// The execution unit of the actor that runs on this thread now, as far as `on_own_thread` knows; or null.
caf::execution_unit*& current_unit();

/// While it lives, what `pass` sends from this thread is worked through by `unit`, after the actor that it runs now.
class on_own_thread {
public:
  explicit on_own_thread(caf::execution_unit* unit) : before_(std::exchange(current_unit(), unit)) {}
  ~on_own_thread() { current_unit() = before_; }
  on_own_thread(const on_own_thread&) = delete;
  on_own_thread& operator=(const on_own_thread&) = delete;

private:
  caf::execution_unit* const before_;
};

/// Sends a message without a sender: to this thread if an actor runs on it, otherwise to a scheduler's thread.
template<class Actor, class Message>
void pass(const Actor& to, Message&& message) {
  if (to) to->eq_impl(caf::make_message_id(), nullptr, current_unit(), std::forward<Message>(message));
}

/// Lets a thread that does not belong to the scheduler run actors.
class borrowed_thread final : public caf::execution_unit {
public:
  explicit borrowed_thread(caf::actor_system& system) : caf::execution_unit(&system) {}
  ~borrowed_thread() override;
  borrowed_thread(const borrowed_thread&) = delete;
  borrowed_thread& operator=(const borrowed_thread&) = delete;

  void exec_later(caf::resumable* job) override { jobs_.push_back(job); }

  /// Runs the actors that are queued here, and those that they give work to, up to a limit. What is left then goes to the
  /// scheduler.
  void run();

private:
  std::deque<caf::resumable*> jobs_;
};

/// The same as `pass`, but works through the message now, on this thread, unless its actor is at work on another.
template<class Actor, class Message>
void pass_here(const Actor& to, Message&& message) {
  if (!to || current_unit() != nullptr) return pass(to, std::forward<Message>(message));
  borrowed_thread unit(to->home_system());
  const on_own_thread here(&unit);
  pass(to, std::forward<Message>(message));
  unit.run();
}

} // namespace parley::actors
