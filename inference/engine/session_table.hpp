#pragma once

#include "base/assert.hpp"
#include "inference/engine.hpp"
#include "inference/engine/isolate.hpp"
#include "inference/engine/session.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace parley::inference {

/// The sessions of an engine, isolated from each other: whatever goes wrong in a task's step ends that task or its
/// session, and nothing else. Sessions and tasks of a running batch stay in place; `bury` removes those that have
/// ended. Used by the engine's thread only.
class session_table {
public:
  /// `tell` must outlive the table. `device_works` says whether the device still works and is asked after an exception;
  /// empty = it always does. It must not throw.
  explicit session_table(const engine::sink& tell, std::function<bool()> device_works = {})
      : tell_(tell), device_works_(std::move(device_works)) {}
  ~session_table();
  session_table(const session_table&) = delete;
  session_table& operator=(const session_table&) = delete;

  /// Null if there is no such session, or it is over.
  session* find(session_id id);
  template<class Session>
  Session* find(session_id id) {
    return dynamic_cast<Session*>(find(id));
  }

  std::size_t size() const { return sessions_.size(); }

  /// Calls `f(task&)` for each running task, by session. `f` may run a step of the task.
  template<class F>
  void each_task(F&& f) const {
    for (const auto& [id, s] : sessions_)
      if (!s->over && s->running) f(*s->running);
  }

  /// Calls `f(session&)` for each session that is not over.
  template<class F>
  void each_session(F&& f) const {
    for (const auto& [id, s] : sessions_)
      if (!s->over) f(*s);
  }

  /// The running tasks of these sessions that still need the stage: an earlier stage of the pass may have ended others.
  std::vector<task*> needing(stage at, std::span<const session_id> ids);

  /// The running task if it needs the stage, else null.
  task* needing(stage at, session_id id);

  session& add(std::unique_ptr<session> fresh);

  /// Starts the task now, or when those before it are done.
  void enqueue(session& s, std::unique_ptr<task> fresh);

  /// Runs one step of a task, `f(task&)`. If that throws, the task has failed. The task may be gone afterwards.
  template<class F>
  void step(task& t, F&& f) noexcept {
    auto& s = t.owner();
    if (s.over) return;
    try {
      PARLEY_ASSERT(s.running.get() == &t, "only the task that a session has under way makes steps");
      std::forward<F>(f)(t);
      PARLEY_ASSERT(t.finished() || t.failed_with() || t.needs() != stage::idle || t.speech_needs() != stage::idle,
                    "a task that goes on needs a stage");
    } catch (...) {
      fail_by_exception(s, words_of_exception().text);
      return;
    }
    conclude(t);
  }

  /// `run_isolated` for parts whose member `by` is their task.
  template<class Part, class Call>
  std::vector<Part> isolated(std::vector<Part> parts, Call&& call) {
    return run_isolated(std::move(parts), std::forward<Call>(call),
                        [this](const Part& p, const char* what) { fail_by_exception(p.by->owner(), what); });
  }

  /// Fails the session's task: the session returns to its state before the task, or ends if that fails.
  void fail(session& s, failure_kind kind, const char* message) noexcept;

  /// The same after an exception, unless the device is lost.
  void fail_by_exception(session& s, const char* message) noexcept;

  /// Checks the device after an exception with this message. Once it is lost, no failure is reported any more: the engine
  /// must end, and its sessions continue on another worker, which repeats what this one was asked.
  bool loses_device(const char* message) noexcept;

  /// What was thrown when the device was lost; none = it works.
  const std::optional<std::string>& device_lost() const { return device_lost_; }

  /// Reports the failure of something that never became a task, or of a session that never opened (`number` 0).
  void refuse(session_id id, std::uint64_t number, failure_kind kind, const char* message) noexcept;

  /// Frees everything that the session holds.
  void end(session_id id) noexcept;

  /// Removes the sessions that have ended. Nothing may use them any more.
  void bury() noexcept;

private:
  void conclude(task& t) noexcept;
  void start_next(session& s) noexcept;
  void give_up(session& s, failure_kind kind, const char* message) noexcept;

  const engine::sink& tell_;
  const std::function<bool()> device_works_;
  std::optional<std::string> device_lost_;
  std::map<session_id, std::unique_ptr<session>> sessions_;
};

} // namespace parley::inference
