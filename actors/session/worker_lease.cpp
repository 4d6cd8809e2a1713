#include "actors/session/worker_lease.hpp"

#include "actors/logger.hpp"
#include "actors/speaks_for.hpp"
#include "base/assert.hpp"

#include <utility>

namespace parley::actors {

namespace {

/// Whether the engine computes an answer to it.
bool is_work(const conversation::command& command) {
  return answer_number(command).has_value();
}

} // namespace

worker_lease::worker_lease(session_actor::base& tenant, queue_actor queue, session_meter& counted,
                           std::size_t most_replay_bytes, terms under)
    : self_(tenant), queue_(std::move(queue)), counted_(counted), most_replay_bytes_(most_replay_bytes),
      terms_(std::move(under)), movable_(terms_.movable) {
  self_.monitor(queue_);
}

void worker_lease::take_over(replay_buffer kept, protocol::open_engine opened_with) {
  replay_ = std::make_unique<replay_buffer>(std::move(kept));
  opened_with_ = std::move(opened_with);
  kind_ = opened_with_->kind;
  prompt_ = prompt_of(opened_with_->order);
  state_ = lease::displaced{};
}

void worker_lease::leave() {
  if (queue_) self_.demonitor(queue_.address());
  queue_ = nullptr;
  state_ = lease::none{};
  opened_with_.reset();
  replay_.reset();
}

const worker_slot& worker_lease::slot() const {
  const auto* has = slot_of(state_);
  PARLEY_ASSERT(has, "there is a slot");
  return *has;
}

// ---- a slot

lease_event worker_lease::ask(protocol::mode kind, bool at_head, bool running) {
  kind_ = kind;
  const bool has_slot = slot_of(state_) != nullptr;
  if (!queue_ || (!has_slot && running && !can_move())) return lease_event::refused;
  const auto ticket = ticket_of(state_);
  state_ = asked(std::move(state_), has_slot || ticket != 0 ? 0 : stand_in_line(at_head, running));
  if (has_slot) {
    counted_.runs_on(slot().key);
    return lease_event::granted;
  }
  if (ticket != 0 && !running) tell_queue(slot_impatient{ticket});
  return lease_event::none;
}

void worker_lease::decline_unasked() {
  if (!in<lease::displaced>()) return;
  if (const auto ticket = ticket_of(state_); ticket != 0) tell_queue(slot_cancelled{ticket});
  if (const auto* unwanted = slot_of(state_)) tell_queue(slot_freed{unwanted->ticket});
  state_ = released(state_);
}

void worker_lease::cancel() {
  if (!in<lease::waiting>()) return;
  tell_queue(slot_cancelled{ticket_of(state_)});
  state_ = out_of_line(std::move(state_));
}

void worker_lease::retype(protocol::mode kind) {
  kind_ = kind;
  if (const auto* has = slot_of(state_))
    tell_queue(slot_retyped{has->ticket, kind});
  else if (const auto ticket = ticket_of(state_); ticket != 0)
    tell_queue(slot_retyped{ticket, kind});
}

void worker_lease::release() {
  if (in<lease::none>()) return; // its worker was lost, or it left the queue
  const auto ticket = slot().ticket;
  state_ = released(state_);
  tell_queue(slot_freed{ticket});
  trial_.forget();
}

lease_event worker_lease::take(const slot_granted& grant) {
  worker_slot fresh{grant.ticket, grant.worker, grant.key};
  if (in<lease::placing>() && slot().ticket == grant.ticket) {
    state_ = granted(state_, std::move(fresh));
    counted_.runs_on(grant.key);
    open_here();
    return lease_event::none;
  }
  if (!waits_for(grant.ticket)) {
    tell_queue(slot_freed{grant.ticket});
    return lease_event::none;
  }
  tell_queue(slot_accepted{grant.ticket});
  if (in<lease::moving>()) leave_slot(); // to the machine, this is a lost worker
  const auto* again = std::get_if<lease::reopening>(&state_);
  const bool replay = again && again->replay;
  const bool open = again && !replay;
  state_ = granted(state_, std::move(fresh));
  if (in<lease::displaced>()) return lease_event::worker_lost;
  counted_.runs_on(grant.key);
  if (replay) return rebuild();
  if (!open) return lease_event::granted;
  open_here();
  return lease_event::none;
}

lease_event worker_lease::take(const slot_refused& refusal) {
  if (!waits_for(refusal.ticket)) return lease_event::none;
  const bool reopening = in<lease::reopening>();
  state_ = out_of_line(std::move(state_));
  if (reopening) return lease_event::worker_lost;
  return in<lease::open>() ? lease_event::none : lease_event::refused; // a session that should move stays
}

/// The worker was full, contrary to the ledger: back to the head of the queue, without telling the machine.
lease_event worker_lease::take(const open_denied& denial) {
  if (denial.session != engine_session() || !(in<lease::open>() || in<lease::replaying>())) return lease_event::none;
  tell_queue(slot_freed{slot().ticket});
  trial_.forget();
  const auto ticket = stand_in_line(true, restoring());
  state_ = denied(state_, ticket);
  return lease_event::none;
}

lease_event worker_lease::take(const slot_lost& news) {
  const auto* has = slot_of(state_);
  if (has && has->ticket == news.ticket) return lose(news.next, news.shut_down);
  tell_queue(slot_cancelled{news.next}); // the slot was already returned
  return lease_event::none;
}

lease_event worker_lease::lose(ticket_key next, bool shut_down) {
  const bool too_often = !shut_down && trial_.lost(restoring());
  if (in<lease::moving>() && next != 0) tell_queue(slot_cancelled{next}); // it already waits for another slot
  state_ = lost(std::move(state_), next);
  trial_.forget();
  return too_often ? lease_event::given_up : lease_event::worker_lost;
}

/// Without a queue manager, nobody else reports that the worker is lost.
lease_event worker_lease::peer_gone(const caf::down_msg& down) {
  if (queue_ && down.source == queue_) {
    queue_ = nullptr;
    if (const auto* has = slot_of(state_)) self_.monitor(has->worker);
    // The pending question will not be answered.
    if (in<lease::placing>()) return take(slot_granted{slot().ticket, slot().worker, slot().key});
    if (trial_.pending()) return take(trial_granted{slot().ticket});
    const auto ticket = ticket_of(state_);
    return ticket != 0 ? take(slot_refused{ticket, protocol::error_code::service_unavailable}) : lease_event::none;
  }
  const auto* has = slot_of(state_);
  if (!has || down.source != has->worker) return lease_event::none;
  return lose(0, down.reason == caf::exit_reason::user_shutdown);
}

ticket_key worker_lease::stand_in_line(bool at_head, bool running, worker_key avoid) {
  const ticket_key ticket = ++terms_.last_key;
  tell_queue(slot_request{&self_, ticket, kind_, at_head, avoid, running, prompt_, terms_.address, terms_.key,
                          terms_.background});
  return ticket;
}

/// The worker ends the engine session and frees the slot.
void worker_lease::leave_slot() {
  if (queue_) self_.send(slot().worker, slot_orphaned{queue_, slot().ticket});
  trial_.forget();
}

// ---- an engine session

void worker_lease::open(const protocol::open_engine& order) {
  opened_with_ = order;
  prompt_ = prompt_of(order.order);
  if (!prompt_) return open_here();
  state_ = being_placed(std::move(state_));
  tell_queue(affinity_request{slot().ticket, *prompt_});
}

void worker_lease::open_here() {
  PARLEY_ASSERT(opened_with_.has_value(), "what is opened was described");
  state_ = opened(std::move(state_), ++terms_.last_key);
  order(opened_with_->order);
}

/// Work that was lost with a worker waits for its trial, and later work waits behind it.
void worker_lease::order(conversation::command command) {
  PARLEY_ASSERT(engine_session() != 0, "commands go to an engine session");
  command = addressed(std::move(command), engine_session());
  if (!replay_) replay_ = std::make_unique<replay_buffer>(most_replay_bytes_);
  auto entered = replay_->enter(std::move(command));
  if (trial_.needed_for_work() && is_work(entered)) want_trial();
  if (trial_.pending())
    trial_.hold(std::move(entered));
  else
    dispatch(std::move(entered));
}

void worker_lease::dispatch(conversation::command&& command) {
  if (is_work(command)) trial_.sent();
  if (opens(command))
    self_.send(slot().worker, engine_open{&self_, slot().ticket, std::move(command)});
  else
    self_.send(slot().worker, engine_command{&self_, std::move(command)});
}

void worker_lease::want_trial() {
  trial_.asked();
  tell_queue(trial_request{slot().ticket});
}

void worker_lease::end_trial() {
  if (trial_.end() && slot_of(state_)) tell_queue(trial_over{slot().ticket});
}

lease_event worker_lease::take(const trial_granted& grant) {
  const auto* has = slot_of(state_);
  if (!has || grant.ticket != has->ticket || !trial_.grant()) return lease_event::none;
  if (restoring()) return rebuild_further();
  for (auto& each : trial_.release()) dispatch(std::move(each));
  return lease_event::none;
}

lease_event worker_lease::close() {
  trial_.release();
  end_trial();
  if (in<lease::reopening>()) {
    tell_queue(slot_cancelled{ticket_of(state_)});
    state_ = out_of_line(std::move(state_));
    return lease_event::closed;
  }
  if (in<lease::placing>() || in<lease::held>()) return lease_event::closed; // nothing is open
  stay();
  order(conversation::close_session{});
  state_ = being_closed(std::move(state_));
  return lease_event::none;
}

bool worker_lease::heeds(const caf::strong_actor_ptr& sender) const {
  const auto* has = slot_of(state_);
  return has && comes_from(sender, has->worker);
}

bool worker_lease::concerns(conversation::event& event) {
  const auto of = session_of(event);
  if (of == 0 || of != engine_session()) return false;
  if (const auto number = replay_->endless(event))
    event =
        conversation::failed{of, *number, conversation::failure_kind::inference, "the worker's answer does not end"};
  replay_->note(event);
  if (restoring()) return true;
  // A first answer suggests that this work does not kill workers, although only its end proves it.
  if (std::holds_alternative<conversation::chat_delta>(event)) end_trial();
  if (!replay_->awaits_answer() || std::holds_alternative<conversation::failed>(event)) {
    trial_.answered();
    end_trial();
  }
  return true;
}

void worker_lease::engine_ended() {
  stay();
  state_ = actors::engine_ended(std::move(state_));
}

// ---- to another worker

void worker_lease::move() {
  if (!in<lease::open>() || !can_move()) return;
  const auto avoid = slot().key;
  state_ = being_moved(std::move(state_), stand_in_line(true, true, avoid));
}

void worker_lease::stay() {
  if (!in<lease::moving>()) return;
  tell_queue(slot_cancelled{ticket_of(state_)});
  state_ = out_of_line(std::move(state_));
}

lease_event worker_lease::restore() {
  counted_.moved();
  log()->info("continues on worker {}: {} units to replay", slot().key, replay_->units());
  return rebuild();
}

/// Rebuilds the session on the worker of its slot, from the replay buffer.
lease_event worker_lease::rebuild() {
  replay_->rewind();
  state_ = being_replayed(std::move(state_), ++terms_.last_key);
  if (!trial_.needed_for_replay()) return rebuild_further();
  want_trial();
  return lease_event::none;
}

lease_event worker_lease::rebuild_further() {
  if (trial_.pending()) return lease_event::none;
  while (auto next = replay_->next(engine_session())) dispatch(std::move(*next));
  if (!replay_->whole()) return give_up_moving();
  if (!replay_->caught_up()) return lease_event::none;
  state_ = caught_up(std::move(state_));
  trial_.replayed();
  end_trial();
  return lease_event::restored;
}

lease_event worker_lease::take_restored(const conversation::event& event) {
  return std::holds_alternative<conversation::failed>(event) ? give_up_moving() : rebuild_further();
}

lease_event worker_lease::give_up_moving() {
  movable_ = false;
  leave_slot();
  state_ = given_up(state_);
  return lease_event::worker_lost;
}

} // namespace parley::actors
