#include "actors/session.hpp"

#include "actors/convert.hpp"
#include "actors/log.hpp"
#include "actors/log_exceptions.hpp"
#include "actors/secure_random.hpp"
#include "actors/status_report.hpp"
#include "protocol/server_codec.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace parley::actors {

namespace {

std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

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
      link_(std::move(link)), meter_(house.counted) {
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
  return {
      [this](client_frame& frame) { take_frame(frame); },
      [this](const client_binary&) { carry_out(machine_->on_binary(steady_now())); },
      [this](const client_gone&) {
        client_gone_ = true;
        carry_out(machine_->on_gone(steady_now()));
      },
      [this](const close_request& request) { carry_out(machine_->on_close_request(request.reason, steady_now())); },
      [this](const queue_told& word) {
        if (word.ticket != ticket_) return;
        carry_out(word.first ? machine_->on_queued(word.place, steady_now())
                             : machine_->on_queue_update(word.place, steady_now()));
      },
      [this](const slot_granted& grant) { take_grant(grant); },
      [this](const slot_refused& refusal) { take_refusal(refusal); },
      [this](engine_event& event) { take_event(event); },
      [this](const drain_order&) { carry_out(machine_->on_drain(steady_now())); },
      [this](const timer_due&) {
        alarm_.rang(steady_now());
        carry_out(machine_->tick(steady_now()));
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
  queue_ = nullptr;
  pending_.clear();
  opened_with_.reset();
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
  const auto text = std::make_shared<const std::string>(std::move(frame.text));
  if (recording_) recording_->pass(speaker::client, text);
  carry_out(machine_->on_frame(*text, steady_now()));
  link_->taken(text->size());
}

void session::take_grant(const slot_granted& grant) {
  if (grant.ticket != ticket_) return send(queue_, slot_freed{grant.ticket});
  ticket_ = 0;
  slot_ = slot{grant.ticket, grant.worker};
  meter_.runs_on(grant.key);
  monitor(grant.worker);
  send(queue_, slot_accepted{grant.ticket});
  carry_out(machine_->on_granted(steady_now()));
}

void session::take_refusal(const slot_refused& refusal) {
  if (refusal.ticket != ticket_) return;
  ticket_ = 0;
  carry_out(machine_->on_refused(refusal.code, std::string(words_for(refusal.code)), steady_now()));
}

void session::take_event(engine_event& event) {
  const auto id = std::visit([](const auto& of) { return of.session; }, event.event);
  if (id != engine_session_) return;
  meter_.heard(event.event);
  take_engine_event(std::move(event.event));
}

void session::take_engine_event(inference::event&& event) {
  if (auto* opened = std::get_if<inference::opened>(&event)) {
    if (std::exchange(restoring_, false)) return carry_out(machine_->on_restored(steady_now()));
    return carry_out(machine_->on_engine_opened(from_engine(*opened), steady_now()));
  }
  if (auto* output = std::get_if<inference::step_output>(&event))
    return carry_out(machine_->on_step_report(from_engine(std::move(*output)), steady_now()));
  if (auto* delta = std::get_if<inference::chat_delta>(&event))
    return carry_out(machine_->on_turn_report(from_engine(std::move(*delta)), steady_now()));
  if (auto* done = std::get_if<inference::chat_done>(&event))
    return carry_out(machine_->on_turn_done(from_engine(std::move(*done)), steady_now()));
  if (auto* failed = std::get_if<inference::failed>(&event)) {
    if (restoring_) return give_up_moving();
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
    lost_worker_ = down.source;
    slot_.reset();
    engine_session_ = 0;
    restoring_ = false;
    return carry_out(machine_->on_worker_lost(steady_now()));
  }
  if (down.source == queue_ && ticket_ != 0) take_refusal({ticket_, protocol::error_code::service_unavailable});
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
  if (machine_->state() != protocol::session_state::closed || machine_->holds_worker() || !client_gone_) return;
  quit();
}

void session::perform(const protocol::send& effect) {
  meter_.sent(effect.event, machine_->kind());
  if (const auto* error = std::get_if<protocol::error_event>(&effect.event))
    log()->debug("told: {}", protocol::traits(error->code).wire);
  protocol::encode_context context;
  context.spoken = effect.spoken;
  context.session_id = effect.session_id;
  context.legacy_extras = house_.legacy_extras;
  context.send_time_s = static_cast<double>(unix_ms()) / 1000;
  auto frame = std::make_shared<const std::string>(protocol::encode(effect.event, context));
  if (recording_) recording_->pass(speaker::server, frame);
  link_->send(std::move(frame));
}

void session::perform(const protocol::close_link& effect) {
  link_closed_ = true;
  link_->close(effect.code, effect.reason);
}

void session::perform(const protocol::enqueue& effect) {
  // Nothing but the last turn has to follow a chat session to another worker. What a duplex session has heard and said
  // so far cannot follow it.
  const bool stuck = effect.kind != protocol::mode::chat || !movable_;
  ticket_ = ++house_.last_key;
  if (machine_->state() == protocol::session_state::active && stuck)
    return take_refusal({ticket_, protocol::error_code::service_unavailable});
  send(queue_,
       slot_wanted{this, ticket_, effect.kind, effect.at_head, lost_worker_, connection_.group, connection_.key});
}

void session::perform(const protocol::cancel_ticket&) {
  if (ticket_ != 0) send(queue_, slot_cancelled{std::exchange(ticket_, 0)});
}

void session::perform(const protocol::retype& effect) {
  if (effect.kind == protocol::mode::chat) link_->became_chat();
  if (const auto ticket = slot_ ? slot_->ticket : ticket_; ticket != 0) send(queue_, slot_retyped{ticket, effect.kind});
}

void session::perform(const protocol::release_worker&) {
  if (slot_) send(queue_, slot_freed{slot_->ticket});
  drop_slot();
}

void session::perform(const protocol::open_engine& effect) {
  opened_with_ = effect;
  open(effect);
}

void session::perform(protocol::submit_unit& effect) {
  order(to_engine(std::move(effect), engine_session_));
}

void session::perform(const protocol::cut_step&) {
  order(inference::cut{engine_session_});
}

void session::perform(const protocol::submit_turn& effect) {
  order(to_engine(effect, engine_session_));
}

void session::perform(const protocol::cancel_turn&) {
  order(inference::cancel_turn{engine_session_});
}

void session::perform(const protocol::restore_session&) {
  restoring_ = true;
  meter_.moved();
  open(*opened_with_);
}

void session::perform(const protocol::close_engine&) {
  order(inference::close_session{engine_session_});
}

void session::open(const protocol::open_engine& order) {
  engine_session_ = ++house_.last_key;
  send(slot_->worker, engine_open{this, to_engine(order, engine_session_)});
}

void session::order(inference::command&& command) {
  send(slot_->worker, engine_order{this, std::move(command)});
}

} // namespace parley::actors
