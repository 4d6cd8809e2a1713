#include "actors/logger.hpp"
#include "actors/session/session.hpp"
#include "actors/unix_time.hpp"
#include "protocol/codec/server_codec.hpp"

#include <utility>

// How a session carries out its machine's effects.
namespace parley::actors {

namespace {

/// The event without what only the client may see; none = there is nothing to hide.
std::optional<protocol::server_event> without_secret(const protocol::server_event& event) {
  std::optional<protocol::server_event> open;
  if (const auto* created = std::get_if<protocol::session_created>(&event); created && created->resume_token) {
    open = event;
    std::get<protocol::session_created>(*open).resume_token.reset();
  } else if (std::holds_alternative<protocol::session_resumed>(event)) {
    open = event;
    std::get<protocol::session_resumed>(*open).resume_token.clear();
  }
  return open;
}

} // namespace

void session::perform(protocol::send& effect) {
  meter_.sent(effect.event, machine_->kind());
  if (trace_) trace_->sent(effect.event, machine_->kind(), steady_now());
  if (std::holds_alternative<protocol::session_created>(effect.event)) {
    log_begin();
    begin_charging();
  }
  if (const auto* error = std::get_if<protocol::error_event>(&effect.event))
    log()->debug("told: {}", protocol::traits(error->code).wire);
  auto* const guest = link_->guest();
  if (guest && !recording_) {
    if (!client_gone_) guest->hand_over(std::move(effect.event));
    return;
  }
  protocol::encode_context context;
  context.spoken = effect.spoken;
  context.session_id = effect.session_id;
  context.legacy_extras = shared_.legacy_extras;
  context.event_id = effect.event_id;
  context.send_time_s = static_cast<double>(unix_ms()) / 1000;
  auto frame = std::make_shared<const std::string>(protocol::encode(effect.event, context));
  if (recording_) {
    const auto open = without_secret(effect.event);
    recording_->pass(speaker::server,
                     open ? std::make_shared<const std::string>(protocol::encode(*open, context)) : frame,
                     accepted_media::samples);
  }
  if (effect.event_id > 0) sent_.keep(effect.event_id, frame);
  const bool seen = effect.event_id > 0 && effect.event_id <= seen_; // by a client that knew an earlier process
  if (client_gone_ || seen) return;
  guest ? guest->hand_over(std::move(effect.event)) : link_->send(std::move(frame));
}

void session::perform(const protocol::send_again& effect) {
  sent_.after(effect.after, [this](const auto& frame) { link_->send(frame); });
}

void session::perform(const protocol::close_link& effect) {
  link_closed_ = true;
  link_->close(effect.code, effect.reason);
}

void session::perform(const protocol::enqueue& effect) {
  if (trace_) trace_->enqueued(steady_now());
  forward(lease_.ask(effect.kind, effect.at_head, active()));
}

void session::perform(const protocol::cancel_ticket&) {
  init_held_.reset();
  lease_.cancel();
}

void session::perform(const protocol::retype& effect) {
  if (effect.kind == protocol::mode::chat) link_->became_chat();
  lease_.retype(effect.kind);
}

void session::perform(const protocol::release_worker&) {
  lease_.release();
}

void session::perform(const protocol::open_engine& effect) {
  init_held_.reset();
  if (trace_) trace_->opens(steady_now());
  lease_.open(effect);
}

void session::perform(conversation::submit_unit& order) {
  meter_.submitted(order);
  if (trace_) trace_->submitted(false, steady_now());
  lease_.order(std::move(order));
}

void session::perform(const conversation::cut& order) {
  lease_.order(order);
}

void session::perform(conversation::submit_turn& order) {
  meter_.submitted(order);
  if (trace_) trace_->submitted(true, steady_now());
  lease_.order(std::move(order));
}

void session::perform(const conversation::cancel_turn& order) {
  lease_.order(order);
}

void session::perform(const protocol::restore_session&) {
  forward(lease_.restore());
}

void session::perform(const protocol::close_engine&) {
  forward(lease_.close());
}

void session::perform(protocol::transcribe_turn& effect) {
  // Turns that are judged are wanted by who offers functions, and need no setting of their own.
  const bool wanted = shared_.open && (effect.what.offer || shared_.transcribes);
  if (!wanted || !shared_.owners ||
      !shared_.owners->of(owner_of(connection_), steady_now())->take_session(steady_now())) {
    send(this, transcript_ready{{effect.what.number, protocol::transcript_result::busy}});
    return;
  }
  if (!transcription_) {
    auto tell = [to = session_actor(this)](protocol::transcript heard) {
      caf::anon_send(to, transcript_ready{std::move(heard)});
    };
    transcription_ = system().spawn<transcription>(shared_.open, connection_, shared_.counted, std::move(tell));
  }
  write_down(this, transcription_, std::move(effect.what));
}

} // namespace parley::actors
