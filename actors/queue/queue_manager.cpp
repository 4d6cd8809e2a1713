#include "actors/queue/queue_manager.hpp"

#include "actors/log_exceptions.hpp"
#include "actors/logger.hpp"
#include "actors/secure_random.hpp"
#include "actors/speaks_for.hpp"
#include "base/assert.hpp"
#include "base/printable.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace parley::actors {

namespace {

constexpr std::size_t most_reason_bytes = 1024;

/// The reason that a worker gave when it ended.
std::string reason_of(const caf::error& why) {
  if (!why) return "it has ended";
  if (why.context().match_elements<std::string>())
    return base::printable(why.context().get_as<std::string>(0), most_reason_bytes);
  return "its link or process is gone";
}

ticket_key ticket_in(const queue_event& word) {
  return std::visit([](const auto& of) { return of.ticket; }, word);
}

} // namespace

queue_manager::queue_manager(caf::actor_config& config, queue_settings settings, waiting_limits waiting,
                             surroundings around)
    : queue_actor::base(config), line_(settings), waiting_limits_(waiting), around_(around), random_(secure_random) {}

queue_manager::behavior_type queue_manager::make_behavior() {
  log_exceptions(this);
  set_down_handler([this](const caf::down_msg& down) {
    if (const auto worker = around_.board.key_of(down.source)) return worker_gone(*worker, down.reason);
    session_gone(down.source);
  });
  return {
      [this](slot_request& message) {
        const auto session = message.session;
        isolate(message.ticket, session, [&] { enqueue(message); });
      },
      [this](const slot_cancelled& of) { serve(of.ticket, [&] { cancel(of.ticket); }); },
      [this](const slot_accepted& of) { serve(of.ticket, [&] { line_.accept(of.ticket, steady_now()); }); },
      [this](const slot_freed& of) { free(of.ticket); },
      [this](const slot_retyped& of) { serve(of.ticket, [&] { line_.retype(of.ticket, of.kind); }); },
      [this](const slot_impatient& of) {
        serve(of.ticket, [&] {
          line_.make_impatient(of.ticket, steady_now());
          deliver({});
        });
      },
      [this](const affinity_request& of) { serve(of.ticket, [&] { rebalance(of); }); },
      [this](const trial_request& of) { serve(of.ticket, [&] { try_again(of); }); },
      [this](const trial_over& of) { serve(of.ticket, [&] { end_trial(of.ticket); }); },
      [this](const worker_joins& message) { join(message); },
      [this](const slots_offered& message) {
        if (is_from(message.key)) offer(message);
      },
      [this](capacity_report& message) {
        if (is_from(message.key)) note(message);
      },
      [this](const orphan_closed& of) {
        if (is_from(of.key) && line_.worker_of(of.ticket) == of.key) free(of.ticket);
      },
      [this](const worker_leaves& message) {
        if (!is_from(message.key) || !around_.board.leave(message.key)) return;
        log()->info("worker {} leaves", message.key);
        take_no_more(message.key);
      },
      [this](const snapshot_request& request) { request.done(snapshot()); },
      [this](const worker_drain& message) { drain(message); },
      [this](const drain_request&) { deliver(line_.drain(steady_now())); },
      [this](const timer_due&) {
        deadline_timer_.fired(steady_now());
        deliver(line_.tick(steady_now()));
      },
  };
}

void queue_manager::on_exit() {
  parties_.clear();
  around_.board.let_go();
}

// ---- isolation of sessions

template<class Work>
void queue_manager::serve(ticket_key ticket, Work work) {
  const auto found = parties_.find(ticket);
  if (found == parties_.end()) return; // it has another ticket by now, or none
  const auto session = found->second.session;
  isolate(ticket, session, std::move(work));
}

template<class Work>
void queue_manager::isolate(ticket_key ticket, const session_actor& session, Work work) {
  try {
    work();
  } catch (const std::exception& problem) {
    log()->error("ticket {} is withdrawn: {}", ticket, problem.what());
    abandon(ticket, session);
  }
}

/// Ends the session, and removes the ticket if the session owns it.
void queue_manager::abandon(ticket_key ticket, const session_actor& session) {
  if (session) send(session, session_fault{});
  if (const auto found = parties_.find(ticket); found != parties_.end() && found->second.session != session) return;
  try {
    forget(ticket);
    auto words = line_.worker_of(ticket) ? line_.free(ticket, steady_now()) : line_.cancel(ticket, steady_now());
    deliver(std::move(words));
  } catch (const std::exception& problem) {
    log()->error("the slot of ticket {} was not returned: {}", ticket, problem.what());
  }
}

// ---- notices of the queue

void queue_manager::deliver(queue_events&& words) {
  for (auto& word : words) {
    const auto ticket = ticket_in(word);
    const auto found = parties_.find(ticket);
    const auto session = found == parties_.end() ? session_actor() : found->second.session;
    isolate(ticket, session, [&] { std::visit([this](auto& of) { send_event(of); }, word); });
  }
  const auto now = steady_now();
  around_.board.expect_slot(now +
                            std::chrono::milliseconds(static_cast<std::int64_t>(1000 * line_.expected_wait_s(now))));
  deadline_timer_.arm(this, line_.next_deadline());
}

queue_manager::party& queue_manager::party_of(ticket_key ticket) {
  const auto found = parties_.find(ticket);
  PARLEY_ASSERT(found != parties_.end() && found->second.session, "the line speaks of tickets that sessions have");
  return found->second;
}

void queue_manager::send_event(ticket_queued& word) {
  send(party_of(word.ticket).session, queue_update{word.ticket, true, std::move(word.place)});
}

void queue_manager::send_event(position_changed& word) {
  send(party_of(word.ticket).session, queue_update{word.ticket, false, std::move(word.place)});
}

void queue_manager::send_event(ticket_granted& word) {
  const auto& to = party_of(word.ticket);
  auto worker = around_.board.actor_of(word.worker);
  PARLEY_ASSERT(worker, "slots are those of workers that are there");
  around_.counted.queue_wait().Observe(std::chrono::duration<double>(steady_now() - to.since).count());
  send(to.session, slot_granted{word.ticket, std::move(worker), word.worker});
}

void queue_manager::send_event(ticket_refused& word) {
  send(party_of(word.ticket).session, slot_refused{word.ticket, word.code});
  forget(word.ticket);
}

void queue_manager::send_event(ticket_recalled& word) {
  if (const auto& session = parties_.at(word.ticket).session) send(session, close_request{"recalled"});
}

// ---- sessions

void queue_manager::enqueue(slot_request& message) {
  PARLEY_ASSERT(!parties_.contains(message.ticket), "a ticket is used once");
  if (waits_too_often(message))
    return send(message.session, slot_refused{message.ticket, protocol::error_code::queue_full});
  monitor(message.session);
  parties_.emplace(message.ticket, party{std::move(message.session), steady_now(), std::move(message.address),
                                         std::move(message.key), message.background});
  deliver(line_.enqueue(message.ticket, protocol::make_ticket_id(random_), message.kind, message.at_head, steady_now(),
                        {message.avoid, message.patient, message.prompt, message.background}));
}

/// If a grant is on its way, `slot_freed` returns it.
void queue_manager::cancel(ticket_key ticket) {
  if (line_.worker_of(ticket)) return;
  forget(ticket);
  deliver(line_.cancel(ticket, steady_now()));
}

/// Whether it would have to wait beyond the limit for its address or key. Sessions that lost their worker are exempt.
bool queue_manager::waits_too_often(const slot_request& message) const {
  if (message.at_head || message.background || (line_.waiting() == 0 && line_.free_slots() > 0)) return false;
  const auto full = [&](std::size_t limit, std::string party::*by, const std::string& who) {
    if (limit == 0 || who.empty()) return false;
    const auto waiting = std::ranges::count_if(parties_, [&](const auto& each) {
      return each.second.*by == who && !each.second.background && !line_.worker_of(each.first);
    });
    return static_cast<std::size_t>(waiting) >= limit;
  };
  return full(waiting_limits_.per_address, &party::address, message.address) ||
         full(waiting_limits_.per_key, &party::key, message.key);
}

void queue_manager::forget(ticket_key ticket) {
  const auto found = parties_.find(ticket);
  if (found == parties_.end()) return;
  if (found->second.session) demonitor(found->second.session.address());
  parties_.erase(found);
  end_trial(ticket);
}

void queue_manager::free(ticket_key ticket) {
  serve(ticket, [&] {
    forget(ticket);
    deliver(line_.free(ticket, steady_now()));
  });
}

void queue_manager::rebalance(const affinity_request& message) {
  queue_events words;
  if (const auto where = line_.rebalance(message.ticket, message.prompt, steady_now(), words)) {
    auto worker = around_.board.actor_of(*where);
    PARLEY_ASSERT(worker, "slots are those of workers that are there");
    send(party_of(message.ticket).session, slot_granted{message.ticket, std::move(worker), *where});
  }
  deliver(std::move(words));
}

void queue_manager::try_again(const trial_request& message) {
  const auto worker = line_.worker_of(message.ticket);
  if (worker && trials_.ask(*worker, message.ticket))
    send(party_of(message.ticket).session, trial_granted{message.ticket});
}

void queue_manager::end_trial(ticket_key ticket) {
  const auto next = trials_.end(ticket);
  if (!next) return;
  if (const auto found = parties_.find(*next); found != parties_.end() && found->second.session)
    send(found->second.session, trial_granted{*next});
}

/// If the session was waiting, it leaves the queue; if it had a slot, the worker frees it.
void queue_manager::session_gone(const caf::actor_addr& who) {
  std::vector<ticket_key> waiting;
  for (auto& [ticket, of] : parties_) {
    if (!of.session || of.session != who) continue;
    const auto key = line_.worker_of(ticket);
    if (!key) {
      waiting.push_back(ticket);
    } else if (const auto worker = around_.board.actor_of(*key)) {
      of.session = nullptr;
      send(worker, slot_orphaned{this, ticket});
    }
  }
  for (const auto ticket : waiting) cancel(ticket);
}

// ---- workers

/// Whether the message that is being handled comes from this worker: each speaks for itself alone.
bool queue_manager::is_from(worker_key key) {
  const auto worker = around_.board.actor_of(key);
  return worker && comes_from(current_sender(), worker);
}

void queue_manager::join(const worker_joins& message) {
  if (const auto replaced = around_.board.join(message.key, message.worker, message.node, message.device))
    around_.counted.remove(*replaced);
  monitor(message.worker);
  deliver(line_.offer(message.key, 0, steady_now())); // clients may wait for it while it loads
}

void queue_manager::offer(const slots_offered& message) {
  const auto slots = around_.board.offer(message.key, message.info);
  if (!slots) return;
  const auto drained = around_.board.to_be_cleared();
  if (std::ranges::find(drained, message.key) == drained.end())
    for (const auto each : drained) ask_to_move(each, true);
  deliver(line_.offer(message.key, *slots, steady_now()));
}

void queue_manager::note(capacity_report& message) {
  const auto told = around_.board.report(message.key, std::move(message.capacity));
  if (!told) return;
  around_.counted.loaded(message.key, told->before, told->now);
  line_.prompts_at(message.key, told->now.prompts);
}

void queue_manager::drain(const worker_drain& message) {
  if (!around_.board.drain(message.key, message.drain)) return message.done(false);
  log()->info("worker {} {}", message.key, message.drain ? "takes no new sessions" : "takes sessions again");
  if (message.drain)
    take_no_more(message.key);
  else
    take_again(message.key);
  message.done(true);
}

/// Sessions on this worker move elsewhere as soon as there is room, and stay where they are until then. A worker that
/// is still loading offers its slots later, but none while it is drained.
void queue_manager::take_no_more(worker_key key) {
  if (const auto info = around_.board.offered_by(key)) offer({key, *info});
  for (const auto drained : around_.board.to_be_cleared()) ask_to_move(drained, true);
}

void queue_manager::take_again(worker_key key) {
  if (const auto info = around_.board.offered_by(key)) offer({key, *info});
  ask_to_move(key, false);
}

/// Sessions that were asked already do nothing.
void queue_manager::ask_to_move(worker_key from, bool go) {
  for (const auto ticket : line_.holders_of(from))
    if (const auto found = parties_.find(ticket); found != parties_.end() && found->second.session)
      send(found->second.session, move_request{go});
}

/// The only place that reports the loss of a worker. Sessions that have ended need no report.
void queue_manager::worker_gone(worker_key key, const caf::error& why) {
  const auto reason = reason_of(why);
  const bool shut_down = why == caf::exit_reason::user_shutdown;
  const bool left = around_.board.lose(key, shut_down, reason);
  if (left) {
    log()->info("worker {} has left", key);
  } else {
    log()->error("worker {} is lost: {}", key, reason);
  }
  around_.counted.gone(key);
  if (left) around_.counted.remove(key);
  trials_.forget(key);
  std::vector<admission_queue::successor> displaced;
  for (const auto lost : line_.holders_of(key)) {
    auto moved = parties_.extract(lost);
    if (moved.empty() || !moved.mapped().session) continue;
    const ticket_key next = ++around_.last_key;
    send(moved.mapped().session, slot_lost{lost, next, shut_down});
    moved.key() = next;
    moved.mapped().since = steady_now();
    parties_.insert(std::move(moved));
    displaced.push_back({lost, next, protocol::make_ticket_id(random_)});
  }
  deliver(line_.worker_down(key, steady_now(), std::move(displaced)));
}

// ---- for GET /status and GET /metrics

server_snapshot queue_manager::snapshot() const {
  const auto now = steady_now();
  server_snapshot all{around_.board.all(), line_.workers(),          {}, {}, line_.conversations(now),
                      line_.capacity(),    around_.sessions.counts()};
  all.waiters = line_.waiters(now);
  all.waits_s.reserve(all.waiters.size());
  for (const auto& each : all.waiters) {
    const auto of = parties_.find(each.ticket);
    all.waits_s.push_back(of == parties_.end() ? 0 : std::chrono::duration<double>(now - of->second.since).count());
  }
  return all;
}

} // namespace parley::actors
