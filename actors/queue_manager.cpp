#include "actors/queue_manager.hpp"

#include "actors/log_exceptions.hpp"
#include "actors/secure_random.hpp"
#include "actors/status_report.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace parley::actors {

namespace {

/// What a worker gave as the reason of its end.
std::string reason_of(const caf::error& why) {
  if (!why) return "it has ended";
  if (why.context().match_elements<std::string>()) return why.context().get_as<std::string>(0);
  return "it was killed";
}

} // namespace

queue_manager::queue_manager(caf::actor_config& config, queue_settings settings, worker_board& board,
                             const session_registry& sessions)
    : queue_actor::base(config), line_(settings), board_(board), sessions_(sessions), random_(secure_random) {}

queue_manager::behavior_type queue_manager::make_behavior() {
  log_exceptions(this);
  set_down_handler([this](const caf::down_msg& down) { gone(down); });
  return {
      [this](slot_wanted& message) { enqueue(message); },
      [this](const slot_cancelled& message) {
        tell(line_.cancel(message.ticket, steady_now()));
        // A grant that is on its way comes back as `slot_freed`.
        if (const auto found = holders_.find(message.ticket); found != holders_.end() && !found->second.worker)
          forget(message.ticket);
      },
      [this](const slot_accepted& message) { line_.accept(message.ticket, steady_now()); },
      [this](const slot_freed& message) {
        forget(message.ticket);
        tell(line_.free(message.ticket, steady_now()));
      },
      [this](const slot_retyped& message) { line_.retype(message.ticket, message.kind); },
      [this](const worker_joins& message) { join(message); },
      [this](const slots_offered& message) { offer(message); },
      [this](const status_request& message) { report(message); },
      [this](const drain_order&) { tell(line_.drain(steady_now())); },
      [this](const timer_due&) {
        alarm_.rang(steady_now());
        tell(line_.tick(steady_now()));
      },
  };
}

void queue_manager::on_exit() {
  holders_.clear();
  workers_.clear();
}

// ---- the line's words -------------------------------------------------------------------------------------------------

void queue_manager::tell(queue_words&& words) {
  for (auto& word : words) std::visit([this](auto& of) { say(of); }, word);
  alarm_.arm(this, line_.next_deadline());
}

void queue_manager::say(told_queued& word) {
  send(holders_.at(word.ticket).session, queue_told{word.ticket, true, std::move(word.place)});
}

void queue_manager::say(told_place& word) {
  send(holders_.at(word.ticket).session, queue_told{word.ticket, false, std::move(word.place)});
}

void queue_manager::say(told_granted& word) {
  auto& to = holders_.at(word.ticket);
  to.worker = word.worker;
  send(to.session, slot_granted{word.ticket, workers_.at(word.worker)});
}

void queue_manager::say(told_refused& word) {
  send(holders_.at(word.ticket).session, slot_refused{word.ticket, word.code});
  forget(word.ticket);
}

// ---- sessions -----------------------------------------------------------------------------------------------------------

void queue_manager::enqueue(slot_wanted& message) {
  for (const auto& [key, worker] : workers_)
    if (worker == message.lost) lose_slots(key);
  monitor(message.session);
  holders_[message.ticket] = holder{std::move(message.session), {}, steady_now()};
  tell(line_.enqueue(message.ticket, protocol::make_ticket_id(random_), message.kind, message.at_head, steady_now()));
}

void queue_manager::forget(ticket_key ticket) {
  const auto found = holders_.find(ticket);
  if (found == holders_.end()) return;
  demonitor(found->second.session.address());
  holders_.erase(found);
}

void queue_manager::gone(const caf::down_msg& down) {
  for (const auto& [key, worker] : workers_)
    if (worker == down.source) return worker_gone(key, down.reason);
  // What waited leaves the line; what held a slot has it freed by the worker.
  std::vector<ticket_key> waiting;
  for (const auto& [ticket, of] : holders_) {
    if (of.session != down.source) continue;
    if (!of.worker) {
      waiting.push_back(ticket);
    } else if (const auto worker = workers_.find(*of.worker); worker != workers_.end()) {
      send(worker->second, slot_orphaned{down.source, ticket});
    }
  }
  for (const auto ticket : waiting) {
    forget(ticket);
    tell(line_.cancel(ticket, steady_now()));
  }
}

// ---- workers ------------------------------------------------------------------------------------------------------------

void queue_manager::join(const worker_joins& message) {
  workers_[message.key] = message.worker;
  board_.set({message.key, worker_state::loading, message.device, {}, {}});
  monitor(message.worker);
}

void queue_manager::offer(const slots_offered& message) {
  if (!workers_.contains(message.key)) return;
  tell(line_.offer(message.key, message.info.slots, steady_now()));
  board_.set({message.key, worker_state::up, message.info.device, message.info, {}});
}

void queue_manager::lose_slots(worker_key key) {
  std::vector<ticket_key> lost;
  for (const auto& [ticket, of] : holders_)
    if (of.worker == key) lost.push_back(ticket);
  for (const auto ticket : lost) forget(ticket);
  tell(line_.worker_down(key, steady_now()));
}

void queue_manager::worker_gone(worker_key key, const caf::error& why) {
  const auto reason = reason_of(why);
  if (why == caf::exit_reason::user_shutdown) {
    spdlog::debug("worker {} ends", key);
  } else {
    spdlog::error("worker {} is lost: {}", key, reason);
  }
  workers_.erase(key);
  lose_slots(key);
  worker_view view{key, worker_state::down, {}, {}, reason};
  for (const auto& before : board_.all())
    if (before.key == key) view.device = before.device;
  board_.set(std::move(view));
}

// ---- GET /status ------------------------------------------------------------------------------------------------------

void queue_manager::report(const status_request& request) {
  std::vector<double> waits;
  for (const auto& [ticket, of] : holders_)
    if (!of.worker) waits.push_back(std::chrono::duration<double>(steady_now() - of.since).count());
  request.done(status_report(board_.all(), line_.workers(), waits, sessions_.counts()));
}

} // namespace parley::actors
