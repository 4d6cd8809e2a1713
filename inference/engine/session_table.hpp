#pragma once

#include "base/assert.hpp"
#include "inference/engine.hpp"
#include "inference/engine/isolate.hpp"
#include "inference/engine/session.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace parley::inference {

/// The sessions of an engine, isolated from each other: whatever a step of one session's task causes ends that task or that
/// session, and nothing else. Sessions and tasks of a running batch stay in place; sessions that have ended are removed by
/// `bury`. Only the engine's thread uses it.
class session_table {
public:
  /// `tell` outlives the table.
  explicit session_table(const engine::sink& tell) : tell_(tell) {}
  ~session_table();
  session_table(const session_table&) = delete;
  session_table& operator=(const session_table&) = delete;

  /// Null = there is none, or it is over.
  session* find(session_id id);
  template<class Session>
  Session* find(session_id id) {
    return dynamic_cast<Session*>(find(id));
  }

  std::size_t size() const { return sessions_.size(); }

  /// `f(task&)` for each task under way, by session. It may make the task step.
  template<class F>
  void each_task(F&& f) const {
    for (const auto& [id, s] : sessions_)
      if (!s->over && s->running) f(*s->running);
  }

  /// Those of these sessions' tasks that need the stage: what came before it in the pass may have failed.
  std::vector<task*> needing(stage at, std::span<const session_id> ids);

  /// The task under way if it needs the stage; else null.
  task* needing(stage at, session_id id);

  session& add(std::unique_ptr<session> fresh);

  /// The task begins now, or when those before it are done.
  void enqueue(session& s, std::unique_ptr<task> fresh);

  /// One step of a task: `f(task&)`. What it throws is that task's failure. The task may be gone afterwards.
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
      fail(s, failure::inference, words_of_exception().text);
      return;
    }
    conclude(t);
  }

  /// `run_isolated` for parts that name their task in `by`.
  template<class Part, class Call>
  std::vector<Part> isolated(std::vector<Part> parts, Call&& call) {
    return run_isolated(std::move(parts), std::forward<Call>(call),
                        [this](const Part& p, const char* what) { fail(p.by->owner(), failure::inference, what); });
  }

  /// The session's task has failed: the session is restored to its state before it and goes on, or ends if it can't.
  void fail(session& s, failure kind, const char* message) noexcept;

  /// Reports the failure of something that never became a task, or of a session that never opened (`number` 0).
  void refuse(session_id id, std::uint64_t number, failure kind, const char* message) noexcept;

  /// Drops everything that the session holds.
  void end(session_id id) noexcept;

  /// Removes the sessions that have ended. Nothing may still use them.
  void bury() noexcept;

private:
  void conclude(task& t) noexcept;
  void start_next(session& s) noexcept;
  void give_up(session& s, failure kind, const char* message) noexcept;

  const engine::sink& tell_;
  std::map<session_id, std::unique_ptr<session>> sessions_;
};

} // namespace parley::inference
