#include "inference/engine/session_table.hpp"

#include "inference/logger.hpp"

#include <new>
#include <string>

// A fault of one session ends at most that session: nothing here that reports or ends anything throws.
namespace parley::inference {

namespace {

void log_quietly(const char* what, const char* why) noexcept {
  try {
    log_info(std::string(what) + why);
  } catch (...) { // out of memory for the message
  }
}

} // namespace

session_table::~session_table() {
  while (!sessions_.empty()) end(sessions_.begin()->first);
}

session* session_table::find(session_id id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() || found->second->over ? nullptr : found->second.get();
}

task* session_table::needing(stage at, session_id id) {
  const auto* s = find(id);
  auto* t = s ? s->running.get() : nullptr;
  return t && (t->needs() == at || t->speech_needs() == at) ? t : nullptr;
}

std::vector<task*> session_table::needing(stage at, std::span<const session_id> ids) {
  std::vector<task*> tasks;
  tasks.reserve(ids.size());
  for (auto id : ids)
    if (auto* t = needing(at, id)) tasks.push_back(t);
  return tasks;
}

session& session_table::add(std::unique_ptr<session> fresh) {
  const auto id = fresh->id;
  const auto [place, added] = sessions_.emplace(id, std::move(fresh));
  PARLEY_ASSERT(added, "a session's number is free when it is added");
  return *place->second;
}

void session_table::enqueue(session& s, std::unique_ptr<task> fresh) {
  s.waiting.push_back(std::move(fresh));
  start_next(s);
}

/// A task that fails to begin fails alone; those behind it still run.
void session_table::start_next(session& s) noexcept {
  while (!s.over && !s.running && !s.waiting.empty()) {
    s.running = std::move(s.waiting.front());
    s.waiting.pop_front();
    step(*s.running, [](task& t) { t.begin(); });
  }
}

/// Called after each step: a task that has finished or failed makes room for the next one.
void session_table::conclude(task& t) noexcept {
  auto& s = t.owner();
  if (const auto& why = t.failed_with()) return fail(s, why->kind, why->message.c_str());
  if (!t.finished()) return;
  s.running.reset();
  start_next(s);
}

void session_table::refuse(session_id id, std::uint64_t number, failure_kind kind, const char* message) noexcept {
  try {
    try {
      tell_(failed{id, number, kind, message});
    } catch (const std::bad_alloc&) {
      tell_(failed{id, number, kind, {}}); // out of memory even for the message
    }
  } catch (...) {
    log_quietly("engine: a failure could not be reported: ", words_of_exception().text);
  }
}

bool session_table::loses_device(const char* message) noexcept {
  if (device_lost_) return true;
  if (!device_works_ || device_works_()) return false;
  try {
    device_lost_ = message;
  } catch (...) { // there is no memory for it
    device_lost_.emplace();
  }
  return true;
}

void session_table::fail_by_exception(session& s, const char* message) noexcept {
  if (!loses_device(message)) fail(s, failure_kind::inference, message);
}

void session_table::fail(session& s, failure_kind kind, const char* message) noexcept {
  if (s.over) return;
  const auto number = s.running ? s.running->number() : std::nullopt;
  if (!number) return give_up(s, kind, message);
  try {
    s.running->take_back();
  } catch (...) {
    log_quietly("engine: a session can't be restored: ", words_of_exception().text);
    return give_up(s, kind, message);
  }
  refuse(s.id, *number, kind, message); // the message may belong to the task
  s.running.reset();
  start_next(s);
}

/// Ends a session that was not open yet or cannot be restored. Its pending requests are refused.
void session_table::give_up(session& s, failure_kind kind, const char* message) noexcept {
  s.over = true;
  refuse(s.id, s.running ? s.running->number().value_or(0) : 0, kind, message);
  for (const auto& t : s.waiting)
    if (const auto number = t->number()) refuse(s.id, *number, kind, message);
}

void session_table::end(session_id id) noexcept {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  found->second->waiting.clear(); // tasks are destroyed before the session that they use
  found->second->running.reset();
  sessions_.erase(found);
}

void session_table::bury() noexcept {
  for (auto next = sessions_.begin(); next != sessions_.end();) {
    const auto& s = *(next++)->second;
    if (s.over) end(s.id);
  }
}

} // namespace parley::inference
