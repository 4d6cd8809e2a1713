#include "actors/tenancy.hpp"

#include "actors/convert.hpp"
#include "actors/log.hpp"

#include <utility>

namespace parley::actors {

namespace {

bool opens(const inference::command& command) {
  return std::holds_alternative<inference::open_duplex>(command) ||
         std::holds_alternative<inference::open_chat>(command);
}

/// Whether the engine computes something for it, and answers.
bool is_work(const inference::command& command) {
  return opens(command) || std::holds_alternative<inference::submit_unit>(command) ||
         std::holds_alternative<inference::submit_turn>(command);
}

} // namespace

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
    const bool shut_down = down.reason == caf::exit_reason::user_shutdown;
    const bool too_often = !shut_down && count_loss();
    slot_.reset();
    engine_session_ = 0;
    restoring_ = false;
    forget_work();
    return too_often ? tidings::given_up : tidings::worker_lost;
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
  forget_work();
}

/// Nothing is with a worker any more. The queue manager forgets a trial with its slot.
void tenancy::forget_work() {
  exposed_ = false;
  trial_ = trial::none;
  held_.clear();
}

/// The worker has died. Whether that is the second time for the same work, or for the replay of the same journal.
bool tenancy::count_loss() {
  if (!exposed_) return false;
  auto& losses = restoring_ ? replay_losses_ : work_losses_;
  constexpr int most = 2;
  return ++losses >= most;
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
  order(to_engine(*opened_with_, engine_session_));
}

/// What was lost with a worker waits for its trial, and what comes after it waits behind it.
void tenancy::order(inference::command&& command) {
  auto entered = journal_.enter(std::move(command));
  if (work_losses_ > 0 && trial_ == trial::none && is_work(entered)) want_trial();
  if (trial_ == trial::wanted)
    held_.push_back(std::move(entered));
  else
    dispatch(std::move(entered));
}

void tenancy::dispatch(inference::command&& command) {
  exposed_ = exposed_ || is_work(command);
  if (opens(command))
    self_.send(slot_->worker, engine_open{&self_, slot_->ticket, std::move(command)});
  else
    self_.send(slot_->worker, engine_order{&self_, std::move(command)});
}

void tenancy::want_trial() {
  trial_ = trial::wanted;
  self_.send(queue_, trial_wanted{slot_->ticket});
}

void tenancy::end_trial() {
  if (std::exchange(trial_, trial::none) != trial::none && slot_) self_.send(queue_, trial_over{slot_->ticket});
}

tidings tenancy::take(const trial_granted& grant) {
  if (trial_ != trial::wanted || !slot_ || grant.ticket != slot_->ticket) return tidings::none;
  trial_ = trial::granted;
  if (restoring_) return rebuild_further();
  for (auto& each : std::exchange(held_, {})) dispatch(std::move(each));
  return tidings::none;
}

tidings tenancy::close() {
  restoring_ = false;
  held_.clear();
  end_trial();
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
  // Words are a sign that the work is not what ends workers; only its end proves it.
  if (!restoring_ && std::holds_alternative<inference::chat_delta>(event)) end_trial();
  if (!restoring_ && (!journal_.awaits_answer() || std::holds_alternative<inference::failed>(event))) {
    exposed_ = false;
    work_losses_ = 0;
    end_trial();
  }
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
  if (replay_losses_ == 0) return rebuild_further();
  want_trial();
  return tidings::none;
}

tidings tenancy::rebuild_further() {
  if (trial_ == trial::wanted) return tidings::none;
  while (auto next = journal_.next(engine_session_)) dispatch(std::move(*next));
  if (!journal_.whole()) return give_up_moving();
  if (!journal_.caught_up()) return tidings::none;
  restoring_ = exposed_ = false;
  replay_losses_ = 0;
  end_trial();
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
