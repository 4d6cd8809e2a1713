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

/// The sessions of an engine, and what isolates them from each other: whatever one of them causes in a step of its task
/// ends that task, or that session, and nothing else. Sessions and tasks that are part of a running batch stay where they
/// are: a session that is over goes in `bury`. The engine's thread alone uses it.
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

  /// What the session was doing came to nothing; it is as before and goes on, unless it can't.
  void fail(session& s, failure kind, const char* message) noexcept;

  /// Tells a failure of something that never became a task, or of a session that never was (`number` 0).
  void refuse(session_id id, std::uint64_t number, failure kind, const char* message) noexcept;

  /// Nothing is left of the session.
  void end(session_id id) noexcept;

  /// Ends the sessions that are over. Nobody works with them any more.
  void bury() noexcept;

private:
  void conclude(task& t) noexcept;
  void start_next(session& s) noexcept;
  void give_up(session& s, failure kind, const char* message) noexcept;

  const engine::sink& tell_;
  std::map<session_id, std::unique_ptr<session>> sessions_;
};

} // namespace parley::inference
