#include "actors/tenancy.hpp"

#include "actors/convert.hpp"
#include "actors/log.hpp"

#include <utility>

namespace parley::actors {

tenancy::tenancy(session_actor::base& tenant, queue_actor queue, session_meter& counted, journal kept, terms under)
    : self_(tenant), queue_(std::move(queue)), counted_(counted), journal_(std::move(kept)), terms_(std::move(under)),
      movable_(terms_.movable) {
  self_.monitor(queue_);
}

void tenancy::leave() {
  if (queue_) self_.demonitor(queue_.address());
  drop_slot();
  queue_ = nullptr;
  opened_with_.reset();
  journal_ = journal(); // it may hold the actor, to wake it
}

// ---- a slot -----------------------------------------------------------------------------------------------------------

tidings tenancy::ask(protocol::mode kind, bool at_head, bool running) {
  kind_ = kind;
  if (next_slot_) {
    hold(*std::exchange(next_slot_, std::nullopt));
    return tidings::granted;
  }
  if (on(errand::move)) { // already in line for another worker
    asked_->why = errand::place;
    return tidings::none;
  }
  if (running && !can_move()) return tidings::refused;
  stand_in_line(errand::place, at_head, running);
  return tidings::none;
}

void tenancy::cancel() {
  if (asked_) self_.send(queue_, slot_cancelled{asked_->ticket});
  asked_.reset();
}

void tenancy::retype(protocol::mode kind) {
  kind_ = kind;
  if (slot_)
    self_.send(queue_, slot_retyped{slot_->ticket, kind});
  else if (asked_)
    self_.send(queue_, slot_retyped{asked_->ticket, kind});
}

void tenancy::release() {
  if (slot_) self_.send(queue_, slot_freed{slot_->ticket});
  drop_slot();
}

tidings tenancy::take(const slot_granted& grant) {
  if (settling_ && slot_ && grant.ticket == slot_->ticket) return take_place(grant);
  if (!waits_for(grant.ticket)) {
    self_.send(queue_, slot_freed{grant.ticket});
    return tidings::none;
  }
  const errand why = asked_->why;
  asked_.reset();
  self_.send(queue_, slot_accepted{grant.ticket});
  slot fresh{grant.ticket, grant.worker, grant.key};
  if (why == errand::move) return change_over(std::move(fresh));
  hold(std::move(fresh));
  if (why == errand::place) return tidings::granted;
  if (restoring_) return rebuild();
  open_here();
  return tidings::none;
}

tidings tenancy::take(const slot_refused& refusal) {
  if (!waits_for(refusal.ticket)) return tidings::none;
  const errand why = asked_->why;
  asked_.reset();
  switch (why) {
  case errand::place: return tidings::refused;
  case errand::move: return tidings::none; // it stays where it is
  case errand::reopen: break;
  }
  restoring_ = false;
  engine_session_ = 0;
  return tidings::worker_lost;
}

/// The worker was full, against what the queue manager knew: first in line again, and the machine need not know.
tidings tenancy::take(const open_denied& denial) {
  if (denial.session != engine_session_ || !slot_) return tidings::none;
  release();
  stand_in_line(errand::reopen, true, restoring_);
  return tidings::none;
}

tidings tenancy::peer_gone(const caf::down_msg& down) {
  if (slot_ && down.source == slot_->worker) {
    // While it settles, its slot may be another worker's by now: its answer gives it back.
    lost_ = std::exchange(settling_, false) ? 0 : slot_->ticket;
    slot_.reset();
    engine_session_ = 0;
    restoring_ = false;
    return tidings::worker_lost;
  }
  if (down.source == queue_ && asked_) return take(slot_refused{asked_->ticket, {}});
  return tidings::none;
}

void tenancy::stand_in_line(errand why, bool at_head, bool running, worker_key avoid) {
  asked_ = {++terms_.last_key, why};
  self_.send(queue_, slot_wanted{&self_, asked_->ticket, kind_, at_head, lost_, avoid, running, prompt_, terms_.address,
                                 terms_.key});
}

void tenancy::hold(slot fresh) {
  slot_ = std::move(fresh);
  counted_.runs_on(slot_->key);
  self_.monitor(slot_->worker);
}

void tenancy::drop_slot() {
  if (!slot_) return;
  self_.demonitor(slot_->worker.address());
  slot_.reset();
}

// ---- an engine session ------------------------------------------------------------------------------------------------

void tenancy::open(const protocol::open_engine& order) {
  opened_with_ = order;
  prompt_ = prompt_of(to_engine(order, 0));
  if (!prompt_) return open_here();
  settling_ = true;
  self_.send(queue_, place_wanted{slot_->ticket, *prompt_});
}

tidings tenancy::take_place(const slot_granted& grant) {
  settling_ = false;
  if (grant.key != slot_->key) {
    drop_slot();
    hold({grant.ticket, grant.worker, grant.key});
  }
  open_here();
  return tidings::none;
}

void tenancy::open_here() {
  engine_session_ = ++terms_.last_key;
  self_.send(slot_->worker,
             engine_open{&self_, slot_->ticket, journal_.enter(to_engine(*opened_with_, engine_session_))});
}

void tenancy::order(inference::command&& command) {
  self_.send(slot_->worker, engine_order{&self_, journal_.enter(std::move(command))});
}

tidings tenancy::close() {
  restoring_ = false;
  if (std::exchange(settling_, false)) return tidings::closed;
  if (on(errand::move)) cancel();
  if (on(errand::reopen)) {
    cancel();
    engine_session_ = 0;
    return tidings::closed;
  }
  order(inference::close_session{engine_session_});
  return tidings::none;
}

bool tenancy::concerns(const inference::event& event) {
  if (std::visit([](const auto& of) { return of.session; }, event) != engine_session_) return false;
  journal_.note(event);
  return true;
}

// ---- to another worker ------------------------------------------------------------------------------------------------

void tenancy::move() {
  if (!slot_ || asked_ || restoring_ || !can_move()) return;
  stand_in_line(errand::move, true, true, slot_->key);
}

void tenancy::stay() {
  if (on(errand::move)) cancel();
}

/// Leaves the present worker, which frees the slot when it has closed what was there, for the machine as if it were lost.
tidings tenancy::change_over(slot fresh) {
  self_.send(slot_->worker, slot_orphaned{queue_, slot_->ticket});
  drop_slot();
  engine_session_ = 0;
  next_slot_ = std::move(fresh);
  return tidings::worker_lost;
}

tidings tenancy::restore() {
  restoring_ = true;
  counted_.moved();
  log()->info("goes on with worker {}: {} units to repeat", slot_->key, journal_.units());
  return rebuild();
}

/// Makes the session anew on the worker of its slot, from the journal.
tidings tenancy::rebuild() {
  journal_.rewind();
  engine_session_ = ++terms_.last_key;
  return rebuild_further();
}

tidings tenancy::rebuild_further() {
  while (auto next = journal_.next(engine_session_)) {
    if (std::holds_alternative<inference::submit_unit>(*next))
      self_.send(slot_->worker, engine_order{&self_, std::move(*next)});
    else
      self_.send(slot_->worker, engine_open{&self_, slot_->ticket, std::move(*next)});
  }
  if (!journal_.whole()) return give_up_moving();
  if (!journal_.caught_up()) return tidings::none;
  restoring_ = false;
  return tidings::restored;
}

tidings tenancy::take_restored(const inference::event& event) {
  return std::holds_alternative<inference::failed>(event) ? give_up_moving() : rebuild_further();
}

tidings tenancy::woken() {
  return restoring_ && slot_ ? rebuild_further() : tidings::none;
}

tidings tenancy::give_up_moving() {
  restoring_ = false;
  engine_session_ = 0;
  movable_ = false;
  drop_slot();
  return tidings::worker_lost;
}

} // namespace parley::actors
