#include "actors/session.hpp"

#include "actors/convert.hpp"
#include "actors/log.hpp"
#include "actors/log_exceptions.hpp"
#include "actors/secure_random.hpp"
#include "actors/status_report.hpp"
#include "actors/unix_time.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace parley::actors {

namespace {

std::string_view words_for(protocol::error_code code) {
  switch (code) {
  case protocol::error_code::queue_full: return "too many clients are waiting";
  case protocol::error_code::worker_busy: return "all slots are taken and this server does not queue";
  case protocol::error_code::worker_connect_failed: return "no worker could be reached";
  default: return "no worker can take sessions now";
  }
}

} // namespace

session::session(caf::actor_config& config, session_surroundings& house, session_terms terms, queue_actor queue,
                 connection_info connection, std::shared_ptr<client_link> link)
    : session_actor::base(config), house_(house), queue_(std::move(queue)), connection_(std::move(connection)),
      link_(std::move(link)), meter_(house.counted), sent_(house.resume_bytes),
      journal_(journal::bound{house.journal_bytes, house.spill.get()}), movable_(terms.limits.failover.count() > 0) {
  protocol::random_source random = secure_random;
  current_id_ = protocol::sanitise_session_id(connection_.session_id.value_or(""));
  if (current_id_.empty()) current_id_ = protocol::make_session_id(random);
  legacy_id_ = house_.legacy_ids.next(unix_ms());
  protocol::session_origin origin{connection_.mode, current_id_, legacy_id_, {}, connection_.accepted};
  entry_ = house_.registry.add(this, {connection_.remote, connection_.key, connection_.accepted});
  const bool unique = entry_->claim(current_id_, legacy_id_);
  if (unique && house_.recordings) origin.recording_id = house_.recordings->take_id(current_id_);
  const auto recording_id = origin.recording_id;
  machine_ =
      std::make_unique<protocol::session_machine>(std::move(origin), terms.limits, terms.able, std::move(random));
  // Already here, not when a scheduler thread comes by: connections stand in line in the order in which they are admitted.
  monitor(queue_);
  const log_session about(current_id_);
  log()->debug("connected from {}{}{}", connection_.remote, connection_.key.empty() ? "" : " with key ",
               connection_.key);
  auto first = unique ? machine_->start(steady_now()) : machine_->refuse_duplicate_id(steady_now());
  if (recording_id) begin_recording(*recording_id);
  carry_out(std::move(first));
}

session::behavior_type session::make_behavior() {
  log_exceptions(this);
  set_down_handler([this](const caf::down_msg& down) { peer_gone(down); });
  if (house_.spill) journal_.wake_with([self = session_actor(this)] { caf::anon_send(self, journal_woken{}); });
  return {
      [this](client_frame& frame) { take_frame(frame); },
      [this](const client_binary& of) {
        if (of.link == link_number_) carry_out(machine_->on_binary(steady_now()));
      },
      [this](const client_gone& of) {
        if (of.link == link_number_) lose_client();
      },
      [this](const link_offer& offer) { take_offer(*offer.link, offer.claim); },
      [this](const close_request& request) { carry_out(machine_->on_close_request(request.reason, steady_now())); },
      [this](const queue_told& word) {
        if (word.ticket != ticket_) return;
        carry_out(word.first ? machine_->on_queued(word.place, steady_now())
                             : machine_->on_queue_update(word.place, steady_now()));
      },
      [this](const slot_granted& grant) { take_grant(grant); },
      [this](const slot_refused& refusal) { take_refusal(refusal); },
      [this](engine_event& event) { take_event(event); },
      [this](const open_denied& denial) { take_denial(denial); },
      [this](const move_order& order) { take_move(order); },
      [this](const drain_order&) { carry_out(machine_->on_drain(steady_now())); },
      [this](const timer_due&) {
        alarm_.rang(steady_now());
        carry_out(machine_->tick(steady_now()));
      },
      [this](const journal_woken&) {
        if (restoring_ && slot_) rebuild_further();
      },
  };
}

void session::begin_recording(const std::string& id) {
  recording_facts facts;
  facts.id = id;
  facts.legacy_id = legacy_id_;
  facts.key = connection_.key;
  facts.mode = name_of(machine_->kind());
  facts.started_ms = unix_ms();
  facts.folder = utc_date(facts.started_ms) + "/" + id;
  recording_ = std::make_unique<recording_tap>(*house_.recordings, std::move(facts), connection_.accepted);
}

void session::on_exit() {
  tell_end();
  if (!link_closed_ && !client_gone_) link_->close(1011, "internal error");
  if (queue_) demonitor(queue_.address());
  drop_slot();
  entry_.reset();
  machine_.reset();
  recording_.reset();
  link_.reset();
  connection_.place.reset();
  queue_ = nullptr;
  pending_.clear();
  opened_with_.reset();
  journal_ = journal(); // it may hold this actor, to wake it
}

void session::tell_end() {
  const log_session about(machine_->id());
  // Its actor may be ended from outside before the machine has come to its own end.
  const std::string reason = machine_->closed_reason().empty() ? "cut off" : machine_->closed_reason();
  const auto used = machine_->total();
  log()->info("ended: {} after {:.1f} s, {} tokens in, {} out", reason,
              std::chrono::duration<double>(steady_now() - connection_.accepted).count(),
              used.input_text + used.input_audio + used.input_vision, used.output_text + used.output_audio);
  house_.counted.ended(machine_->kind(), reason, connection_.key, used);
}

// ---- what comes in
// --------------------------------------------------------------------------------------------------------

void session::take_frame(client_frame& frame) {
  if (frame.link != link_number_) return;
  const auto text = std::make_shared<const std::string>(std::move(frame.text));
  if (recording_) recording_->pass(speaker::client, text);
  carry_out(machine_->on_frame(*text, steady_now()));
  link_->taken(text->size());
}

void session::lose_client() {
  client_gone_ = true;
  carry_out(machine_->on_gone(steady_now()));
  if (!machine_ || machine_->state() == protocol::session_state::closed) return;
  const log_session about(machine_->id());
  log()->info("its client is gone and may come back");
}

void session::take_offer(offered_link& offer, const protocol::resume_claim& claim) {
  auto welcome = machine_->on_resume(claim, sent_.oldest(), steady_now());
  if (!welcome) return offer.refuse(welcome.error());
  if (!client_gone_) link_->close(1008, "the session goes on over another connection");
  link_ = offer.take();
  link_number_ = offer.number();
  client_gone_ = false;
  if (machine_->kind() == protocol::mode::chat) link_->became_chat();
  {
    const log_session about(machine_->id());
    log()->info("its client is back, from {}", offer.remote());
  }
  carry_out(std::move(*welcome));
}

void session::take_grant(const slot_granted& grant) {
  if (settling_ && slot_ && grant.ticket == slot_->ticket) return take_place(grant);
  if (grant.ticket != ticket_) return send(queue_, slot_freed{grant.ticket});
  ticket_ = 0;
  const slot fresh{grant.ticket, grant.worker, grant.key};
  send(queue_, slot_accepted{grant.ticket});
  if (std::exchange(moving_, false)) return change_over(fresh);
  hold(fresh);
  if (std::exchange(reopening_, false)) return restoring_ ? rebuild() : open(*opened_with_);
  carry_out(machine_->on_granted(steady_now()));
}

void session::take_place(const slot_granted& grant) {
  settling_ = false;
  if (grant.key != slot_->key) {
    drop_slot();
    hold({grant.ticket, grant.worker, grant.key});
  }
  open(*opened_with_);
}

void session::hold(slot fresh) {
  slot_ = std::move(fresh);
  meter_.runs_on(slot_->key);
  monitor(slot_->worker);
}

void session::take_refusal(const slot_refused& refusal) {
  if (refusal.ticket != ticket_) return;
  ticket_ = 0;
  if (std::exchange(moving_, false)) return; // it stays where it is
  if (std::exchange(reopening_, false)) {
    restoring_ = false;
    engine_session_ = 0;
    return carry_out(machine_->on_worker_lost(steady_now()));
  }
  carry_out(machine_->on_refused(refusal.code, std::string(words_for(refusal.code)), steady_now()));
}

void session::take_event(engine_event& event) {
  const auto id = std::visit([](const auto& of) { return of.session; }, event.event);
  if (id != engine_session_) return;
  journal_.note(event.event);
  if (restoring_) {
    if (std::holds_alternative<inference::failed>(event.event)) return give_up_moving();
    return rebuild_further();
  }
  meter_.heard(event.event);
  take_engine_event(std::move(event.event));
}

/// The worker was full, against what the queue manager knew: first in line again, and the machine need not know.
void session::take_denial(const open_denied& denial) {
  if (denial.session != engine_session_ || !slot_) return;
  send(queue_, slot_freed{slot_->ticket});
  drop_slot();
  reopening_ = true;
  ask_for_slot(machine_->kind(), true);
}

void session::take_engine_event(inference::event&& event) {
  if (auto* opened = std::get_if<inference::opened>(&event))
    return carry_out(machine_->on_engine_opened(from_engine(*opened), steady_now()));
  if (auto* output = std::get_if<inference::step_output>(&event))
    return carry_out(machine_->on_step_report(from_engine(std::move(*output)), steady_now()));
  if (auto* delta = std::get_if<inference::chat_delta>(&event))
    return carry_out(machine_->on_turn_report(from_engine(std::move(*delta)), steady_now()));
  if (auto* done = std::get_if<inference::chat_done>(&event))
    return carry_out(machine_->on_turn_done(from_engine(std::move(*done)), steady_now()));
  if (auto* failed = std::get_if<inference::failed>(&event)) {
    // A failed open leaves no engine session.
    if (machine_->state() == protocol::session_state::initializing) engine_session_ = 0;
    return carry_out(machine_->on_engine_failed(from_engine(std::move(*failed)), steady_now()));
  }
  if (!std::holds_alternative<inference::closed>(event)) return;
  engine_session_ = 0;
  carry_out(machine_->on_engine_closed(steady_now()));
}

void session::peer_gone(const caf::down_msg& down) {
  if (slot_ && down.source == slot_->worker) {
    // While it settles, its slot may be another worker's by now: its answer gives it back.
    lost_ = std::exchange(settling_, false) ? 0 : slot_->ticket;
    slot_.reset();
    engine_session_ = 0;
    restoring_ = false;
    return carry_out(machine_->on_worker_lost(steady_now()));
  }
  if (down.source == queue_ && ticket_ != 0) take_refusal({ticket_, protocol::error_code::service_unavailable});
}

// ---- to another worker ------------------------------------------------------------------------------------------------

void session::take_move(const move_order& order) {
  if (!order.go) {
    if (std::exchange(moving_, false)) perform(protocol::cancel_ticket{});
    return;
  }
  const bool at_rest = slot_ && ticket_ == 0 && !restoring_ && machine_->state() == protocol::session_state::active;
  if (!at_rest || !movable_ || !journal_.whole()) return;
  moving_ = true;
  ask_for_slot(machine_->kind(), true, slot_->key);
}

/// Leaves the present worker, which frees the slot when it has closed what was there, for the machine as if it were lost.
void session::change_over(slot fresh) {
  send(slot_->worker, slot_orphaned{queue_, slot_->ticket});
  drop_slot();
  engine_session_ = 0;
  next_slot_ = std::move(fresh);
  carry_out(machine_->on_worker_lost(steady_now()));
}

/// Makes the session anew on the worker of its slot, from the journal.
void session::rebuild() {
  journal_.rewind();
  engine_session_ = ++house_.last_key;
  rebuild_further();
}

void session::rebuild_further() {
  while (auto next = journal_.next(engine_session_)) {
    const bool opens = !std::holds_alternative<inference::submit_unit>(*next);
    if (opens)
      send(slot_->worker, engine_open{this, slot_->ticket, std::move(*next)});
    else
      send(slot_->worker, engine_order{this, std::move(*next)});
  }
  if (!journal_.whole()) return give_up_moving();
  if (!journal_.caught_up()) return;
  restoring_ = false;
  carry_out(machine_->on_restored(steady_now()));
}

void session::give_up_moving() {
  restoring_ = false;
  engine_session_ = 0;
  movable_ = false;
  drop_slot();
  carry_out(machine_->on_worker_lost(steady_now()));
}

void session::drop_slot() {
  if (!slot_) return;
  demonitor(slot_->worker.address());
  slot_.reset();
}

// ---- what goes out
// --------------------------------------------------------------------------------------------------------

void session::carry_out(protocol::effects&& effects) {
  std::move(effects.begin(), effects.end(), std::back_inserter(pending_));
  // Whoever asks the server sees a state no later than the client hears of it.
  if (machine_->state() != protocol::session_state::closed) entry_->update(machine_->kind(), machine_->state());
  if (carrying_out_) return;
  const log_session about(machine_->id());
  carrying_out_ = true;
  for (; !pending_.empty(); pending_.pop_front())
    std::visit([this](auto& effect) { perform(effect); }, pending_.front());
  carrying_out_ = false;
  settle();
}

void session::settle() {
  entry_->update(machine_->kind(), machine_->state());
  alarm_.arm(this, machine_->next_deadline());
  if (recording_ && machine_->state() == protocol::session_state::closed) {
    recording_->became(name_of(machine_->kind()));
    recording_->end(machine_->closed_reason());
  }
  if (machine_->state() != protocol::session_state::closed || !client_gone_) return;
  connection_.place.reset();
  if (!machine_->holds_worker()) quit();
}

} // namespace parley::actors
