#include "actors/queue_manager.hpp"

#include "actors/demo_report.hpp"
#include "actors/log.hpp"
#include "actors/log_exceptions.hpp"
#include "actors/secure_random.hpp"
#include "actors/status_report.hpp"
#include "actors/unix_time.hpp"

#include <algorithm>
#include <utility>

namespace parley::actors {

namespace {

/// What a worker gave as the reason of its end.
std::string reason_of(const caf::error& why) {
  if (!why) return "it has ended";
  if (why.context().match_elements<std::string>()) return why.context().get_as<std::string>(0);
  return "its link or process is gone";
}

} // namespace

queue_manager::queue_manager(caf::actor_config& config, queue_settings settings, waiting_limits waiting,
                             worker_board& board, const session_registry& sessions, meters& counted)
    : queue_actor::base(config), line_(settings), waiting_limits_(waiting), board_(board), sessions_(sessions),
      meters_(counted), random_(secure_random) {}

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
      [this](const place_wanted& message) { settle(message); },
      [this](const trial_wanted& message) { try_again(message); },
      [this](const trial_over& message) { end_trial(message.ticket); },
      [this](const worker_joins& message) { join(message); },
      [this](const slots_offered& message) { offer(message); },
      [this](load_reported& message) { note(message); },
      [this](const worker_leaves& message) {
        if (!workers_.contains(message.key)) return;
        log()->info("worker {} leaves", message.key);
        leaving_.insert(message.key);
        take_no_more(message.key, true);
      },
      [this](const status_request& message) { report(message); },
      [this](const metrics_request& message) { report(message); },
      [this](const worker_drain& message) { drain(message); },
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

/// Null is a fault of ours, which costs one session its place and not everybody the queue.
queue_manager::holder* queue_manager::holder_of(ticket_key ticket) {
  const auto found = holders_.find(ticket);
  if (found != holders_.end()) return &found->second;
  log()->error("the queue speaks of ticket {}, which nobody holds", ticket);
  return nullptr;
}

void queue_manager::say(told_queued& word) {
  if (auto* to = holder_of(word.ticket)) send(to->session, queue_told{word.ticket, true, std::move(word.place)});
}

void queue_manager::say(told_place& word) {
  if (auto* to = holder_of(word.ticket)) send(to->session, queue_told{word.ticket, false, std::move(word.place)});
}

void queue_manager::say(told_granted& word) {
  auto* to = holder_of(word.ticket);
  const auto worker = workers_.find(word.worker);
  if (!to || worker == workers_.end()) return;
  to->worker = word.worker;
  meters_.queue_wait().Observe(std::chrono::duration<double>(steady_now() - to->since).count());
  send(to->session, slot_granted{word.ticket, worker->second, word.worker});
}

void queue_manager::say(told_refused& word) {
  if (auto* to = holder_of(word.ticket)) send(to->session, slot_refused{word.ticket, word.code});
  forget(word.ticket);
}

// ---- sessions -----------------------------------------------------------------------------------------------------------

void queue_manager::enqueue(slot_wanted& message) {
  if (const auto lost = holders_.find(message.lost); lost != holders_.end() && lost->second.worker)
    lose_slots(*lost->second.worker);
  if (waits_too_often(message))
    return send(message.session, slot_refused{message.ticket, protocol::error_code::queue_full});
  monitor(message.session);
  holders_[message.ticket] =
      holder{std::move(message.session), {}, steady_now(), std::move(message.address), std::move(message.key)};
  tell(line_.enqueue(message.ticket, protocol::make_ticket_id(random_), message.kind, message.at_head, steady_now(),
                     {message.avoid, message.patient, message.prompt}));
}

/// Whether it would have to wait and others of its address or key already do, as many as may. Who lost its worker has
/// waited before.
bool queue_manager::waits_too_often(const slot_wanted& message) const {
  if (message.at_head || (line_.waiting() == 0 && line_.free_slots() > 0)) return false;
  const auto full = [&](std::size_t limit, std::string holder::*by, const std::string& who) {
    if (limit == 0 || who.empty()) return false;
    const auto waiting = std::count_if(holders_.begin(), holders_.end(),
                                       [&](const auto& each) { return !each.second.worker && each.second.*by == who; });
    return static_cast<std::size_t>(waiting) >= limit;
  };
  return full(waiting_limits_.per_address, &holder::address, message.address) ||
         full(waiting_limits_.per_key, &holder::key, message.key);
}

void queue_manager::forget(ticket_key ticket) {
  const auto found = holders_.find(ticket);
  if (found == holders_.end()) return;
  demonitor(found->second.session.address());
  holders_.erase(found);
  end_trial(ticket);
}

void queue_manager::try_again(const trial_wanted& message) {
  const auto found = holders_.find(message.ticket);
  if (found == holders_.end() || !found->second.worker) return; // its worker is gone too
  if (trials_.ask(*found->second.worker, message.ticket)) send(found->second.session, trial_granted{message.ticket});
}

void queue_manager::end_trial(ticket_key ticket) {
  const auto next = trials_.end(ticket);
  if (!next) return;
  if (const auto found = holders_.find(*next); found != holders_.end())
    send(found->second.session, trial_granted{*next});
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
      send(worker->second, slot_orphaned{this, ticket});
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
  // It takes the place of one of its node that was lost, if there is such.
  for (const auto& known : board_.all()) {
    if (message.node.empty() || known.node != message.node || known.state != worker_state::down) continue;
    board_.remove(known.key);
    meters_.remove(known.key);
    break;
  }
  board_.set({message.key, worker_state::loading, message.node, message.device, {}, {}});
  monitor(message.worker);
  tell(line_.offer(message.key, 0, steady_now())); // clients wait for it while it loads
}

void queue_manager::offer(const slots_offered& message) {
  if (!workers_.contains(message.key)) return;
  const bool draining = draining_.contains(message.key);
  if (!draining && !draining_.empty()) clear_draining_ones();
  tell(line_.offer(message.key, draining ? 0 : message.info.slots, steady_now()));
  board_.set({message.key,
              draining ? worker_state::draining : worker_state::up,
              node_of(message.key),
              message.info.device,
              message.info,
              {}});
}

void queue_manager::settle(const place_wanted& message) {
  queue_words words;
  const auto where = line_.settle(message.ticket, message.prompt, steady_now(), words);
  const auto found = holders_.find(message.ticket);
  if (const auto worker = where ? workers_.find(*where) : workers_.end();
      worker != workers_.end() && found != holders_.end()) {
    found->second.worker = *where;
    send(found->second.session, slot_granted{message.ticket, worker->second, *where});
  }
  tell(std::move(words));
}

void queue_manager::note(load_reported& message) {
  if (!workers_.contains(message.key)) return;
  line_.prompts_at(message.key, message.load.prompts);
  auto& before = loads_[message.key];
  meters_.loaded(message.key, before, message.load);
  before = std::move(message.load);
}

void queue_manager::drain(const worker_drain& message) {
  if (!workers_.contains(message.key)) return message.done(false);
  log()->info("worker {} {}", message.key, message.drain ? "takes no new sessions" : "takes sessions again");
  take_no_more(message.key, message.drain);
  message.done(true);
}

/// What runs there goes on elsewhere as soon as there is room, and until then where it is.
void queue_manager::take_no_more(worker_key key, bool drain) {
  if (drain) {
    draining_.insert(key);
  } else if (!leaving_.contains(key)) {
    draining_.erase(key);
  }
  // One that is still being loaded offers its slots later, and none while it is drained.
  for (const auto& now : board_.all())
    if (now.key == key && now.state != worker_state::loading) offer(slots_offered{now.key, now.info});
  if (drain) return clear_draining_ones();
  for (const auto& [ticket, of] : holders_)
    if (of.worker == key) send(of.session, move_order{false});
}

/// Asks the sessions of workers that are drained to go elsewhere, if there is anywhere to go. Who was asked already does
/// nothing.
void queue_manager::clear_draining_ones() {
  if (std::all_of(workers_.begin(), workers_.end(), [&](const auto& each) { return draining_.contains(each.first); }))
    return;
  for (const auto& [ticket, of] : holders_)
    if (of.worker && draining_.contains(*of.worker)) send(of.session, move_order{true});
}

std::string queue_manager::node_of(worker_key key) const {
  for (const auto& known : board_.all())
    if (known.key == key) return known.node;
  return {};
}

void queue_manager::lose_slots(worker_key key) {
  trials_.forget(key);
  std::vector<ticket_key> lost;
  for (const auto& [ticket, of] : holders_)
    if (of.worker == key) lost.push_back(ticket);
  for (const auto ticket : lost) forget(ticket);
  tell(line_.worker_down(key, steady_now()));
}

void queue_manager::worker_gone(worker_key key, const caf::error& why) {
  const auto reason = reason_of(why);
  const bool left = leaving_.erase(key) > 0 || why == caf::exit_reason::user_shutdown;
  if (left) {
    log()->info("worker {} has left", key);
  } else {
    log()->error("worker {} is lost: {}", key, reason);
  }
  workers_.erase(key);
  draining_.erase(key);
  loads_.erase(key);
  lose_slots(key);
  meters_.gone(key);
  if (left) {
    meters_.remove(key);
    return board_.remove(key);
  }
  worker_view view{key, worker_state::down, {}, {}, {}, reason};
  for (const auto& before : board_.all())
    if (before.key == key) {
      view.node = before.node;
      view.device = before.device;
    }
  board_.set(view);
}

// ---- GET /status ------------------------------------------------------------------------------------------------------

void queue_manager::report(const status_request& request) {
  const auto now = steady_now();
  const auto waited_s = [now](const holder& of) { return std::chrono::duration<double>(now - of.since).count(); };
  if (request.part == status_part::workers) return request.done(demo_workers(board_.all(), line_.workers()));
  if (request.part == status_part::queue) {
    std::vector<double> waits;
    const auto waiters = line_.waiters(now);
    waits.reserve(waiters.size());
    for (const auto& each : waiters) {
      const holder* of = holder_of(each.ticket);
      waits.push_back(of ? waited_s(*of) : 0);
    }
    return request.done(demo_queue(waiters, waits, line_.conversations(now), line_.capacity(), unix_ms()));
  }
  std::vector<double> waits;
  for (const auto& [ticket, of] : holders_)
    if (!of.worker) waits.push_back(waited_s(of));
  request.done(status_report(board_.all(), line_.workers(), waits, sessions_.counts()));
}

// ---- GET /metrics -----------------------------------------------------------------------------------------------------

void queue_manager::report(const metrics_request& request) {
  meters_.queue_length().Set(static_cast<double>(line_.waiting()));
  for (const auto& worker : board_.all()) {
    const auto kept = meters_.of_worker(worker.key);
    const auto& of = *kept;
    of.up->Set(worker.state == worker_state::up || worker.state == worker_state::draining ? 1 : 0);
    of.slots->Set(0);
    of.busy_slots->Set(0);
  }
  for (const auto& slots : line_.workers()) {
    const auto of = meters_.of_worker(slots.worker);
    of->slots->Set(slots.slots);
    of->busy_slots->Set(slots.busy);
  }
  for (const auto kind : {protocol::mode::chat, protocol::mode::audio, protocol::mode::video})
    for (std::size_t state = 0; state + 1 < protocol::session_states; ++state)
      meters_.sessions(kind, static_cast<protocol::session_state>(state)).Set(0);
  for (const auto& count : sessions_.counts()) meters_.sessions(count.kind, count.state).Set(count.sessions);
  request.done(meters_.text());
}

} // namespace parley::actors
