#include "actors/convert.hpp"
#include "actors/log.hpp"
#include "actors/session.hpp"
#include "actors/unix_time.hpp"
#include "protocol/server_codec.hpp"

#include <utility>

// What a session does of what its machine wants done.
namespace parley::actors {

namespace {

/// The same event for other eyes than the client's; none = there is nothing to hide.
std::optional<protocol::server_event> without_secret(const protocol::server_event& event) {
  if (const auto* created = std::get_if<protocol::session_created>(&event); created && created->resume_token) {
    auto open = *created;
    open.resume_token.reset();
    return open;
  }
  if (const auto* resumed = std::get_if<protocol::session_resumed>(&event)) {
    auto open = *resumed;
    open.resume_token.clear();
    return open;
  }
  return {};
}

} // namespace

void session::perform(const protocol::send& effect) {
  meter_.sent(effect.event, machine_->kind());
  if (const auto* error = std::get_if<protocol::error_event>(&effect.event))
    log()->debug("told: {}", protocol::traits(error->code).wire);
  protocol::encode_context context;
  context.spoken = effect.spoken;
  context.session_id = effect.session_id;
  context.legacy_extras = house_.legacy_extras;
  context.event_id = effect.event_id;
  context.send_time_s = static_cast<double>(unix_ms()) / 1000;
  auto frame = std::make_shared<const std::string>(protocol::encode(effect.event, context));
  if (recording_) {
    const auto open = without_secret(effect.event);
    recording_->pass(speaker::server,
                     open ? std::make_shared<const std::string>(protocol::encode(*open, context)) : frame);
  }
  if (effect.event_id > 0) sent_.keep(effect.event_id, frame);
  if (!client_gone_) link_->send(std::move(frame));
}

void session::perform(const protocol::send_again& effect) {
  sent_.after(effect.after, [this](const auto& frame) { link_->send(frame); });
}

void session::perform(const protocol::close_link& effect) {
  link_closed_ = true;
  link_->close(effect.code, effect.reason);
}

void session::perform(const protocol::enqueue& effect) {
  if (next_slot_) {
    hold(*std::exchange(next_slot_, std::nullopt));
    return carry_out(machine_->on_granted(steady_now()));
  }
  if (std::exchange(moving_, false)) return; // already in line for another worker
  if (machine_->state() == protocol::session_state::active && !(movable_ && journal_.whole())) {
    ticket_ = ++house_.last_key;
    return take_refusal({ticket_, protocol::error_code::service_unavailable});
  }
  ask_for_slot(effect.kind, effect.at_head);
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
  prompt_ = prompt_of(to_engine(effect, 0));
  if (!prompt_) return open(effect);
  settling_ = true;
  send(queue_, place_wanted{slot_->ticket, *prompt_});
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
  log()->info("goes on with worker {}: {} units to repeat", slot_->key, journal_.units());
  rebuild();
}

void session::perform(const protocol::close_engine&) {
  restoring_ = false;
  if (std::exchange(settling_, false)) return carry_out(machine_->on_engine_closed(steady_now()));
  if (std::exchange(moving_, false)) perform(protocol::cancel_ticket{});
  if (std::exchange(reopening_, false)) {
    engine_session_ = 0;
    perform(protocol::cancel_ticket{});
    return carry_out(machine_->on_engine_closed(steady_now()));
  }
  order(inference::close_session{engine_session_});
}

void session::ask_for_slot(protocol::mode kind, bool at_head, worker_key avoid) {
  ticket_ = ++house_.last_key;
  send(queue_,
       slot_wanted{this, ticket_, kind, at_head, lost_, avoid, machine_->state() == protocol::session_state::active,
                   prompt_, connection_.group, connection_.key});
}

void session::open(const protocol::open_engine& order) {
  engine_session_ = ++house_.last_key;
  send(slot_->worker, engine_open{this, slot_->ticket, journal_.enter(to_engine(order, engine_session_))});
}

void session::order(inference::command&& command) {
  send(slot_->worker, engine_order{this, journal_.enter(std::move(command))});
}

} // namespace parley::actors
