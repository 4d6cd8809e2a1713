#include "protocol/session/session_machine.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace parley::protocol {

namespace {

std::optional<mode> mode_named(std::string_view name) {
  if (name == "chat") return mode::chat;
  if (name == "audio") return mode::audio;
  if (name == "video") return mode::video;
  return std::nullopt;
}

} // namespace

session_machine::session_machine(session_origin origin, session_limits limits, capabilities able, random_source random,
                                 token_source tokens)
    : origin_(std::move(origin)), limits_(limits), able_(able), random_(std::move(random)), tokens_(std::move(tokens)),
      delegations_({limits.delegations, limits.delegation}) {
  if (!tokens_) tokens_ = [this] { return make_resume_token(random_); };
}

// ---- the connection

effects session_machine::start(time_point now) {
  PARLEY_ASSERT(state_ == session_state::queued && holding_ == holding::nothing, "a session starts once");
  if (origin_.mode) {
    url_mode_ = mode_named(*origin_.mode);
    if (!url_mode_) {
      reject({error_code::invalid_payload, "mode must be chat, audio or video"}, now);
      hang_up(hang_up_cause::unknown_mode);
      return take();
    }
    mode_ = *url_mode_;
  }
  choose_mode(mode_);
  holding_ = holding::ticket;
  writer().order(enqueue{mode_, false});
  return take();
}

effects session_machine::refuse_duplicate_id(time_point now) {
  reject({error_code::invalid_payload, "session_id is in use"}, now);
  hang_up(hang_up_cause::id_in_use);
  return take();
}

effects session_machine::on_frame(std::string_view frame, time_point now) {
  took_input_ = false;
  if (state_ == session_state::closed) return {};
  if (resume_token_) resume_token_->confirm();
  const auto event = peek(frame);
  if (event) {
    perform(classify(*event), {.now = now, .frame = &*event, .name = event->type_name});
  } else if (event.error().not_json) {
    hang_up(hang_up_cause::not_json);
  } else {
    reject(event.error().reason, now);
  }
  return take();
}

effects session_machine::on_event(result<client_event> event, time_point now) {
  took_input_ = false;
  if (state_ == session_state::closed) return {};
  const auto what = classify(event);
  const std::string_view name = what == session_event::init          ? "session.init"
                                : what == session_event::close       ? "session.close"
                                : what == session_event::tool_result ? "input.tool_result"
                                                                     : "input.append";
  const std::string reason = event && std::holds_alternative<close_event>(*event)
                                 ? std::string(checked_close_reason(std::get<close_event>(*event).reason))
                                 : std::string();
  perform(what, {.now = now, .event = &event, .name = name, .reason = reason});
  return take();
}

effects session_machine::on_binary(time_point) {
  if (state_ != session_state::closed) hang_up(hang_up_cause::binary_frame);
  return take();
}

effects session_machine::on_close_request(std::string_view reason, time_point now) {
  perform(session_event::close, {.now = now, .reason = checked_close_reason(reason)});
  return take();
}

effects session_machine::on_gone(time_point now) {
  perform(session_event::gone, {.now = now});
  return take();
}

tl::expected<effects, error> session_machine::on_resume(const resume_claim& claim, std::uint64_t oldest_kept,
                                                        time_point now) {
  const auto refuse = [](std::string why) { return tl::unexpected(error{error_code::resume_refused, std::move(why)}); };
  if (state_ != session_state::active || !resume_token_ || !resume_token_->opens(claim.token))
    return tl::unexpected(no_such_claim());
  if (claim.last_event_id > std::max(last_event_id_, most_claimed_))
    return refuse("last_event_id: the last event so far is " + std::to_string(last_event_id_));
  if (claim.last_event_id + 1 < oldest_kept)
    return refuse("last_event_id: what came after it is no longer kept; the oldest event that is, is " +
                  std::to_string(oldest_kept));
  most_claimed_ = claim.last_event_id;
  resume_token_->renew(claim.token, tokens_());
  clocks_.stop(session_clock::resume);
  if (duplex_) {
    constexpr std::chrono::seconds least{5};
    its_duplex().on_resumed(now + std::max<time_point::duration>(now - idle_since_, least));
  }
  PARLEY_ASSERT(resume_token_, "what is resumed has a pass");
  const auto seen = std::min(claim.last_event_id, last_event_id_);
  out_.emplace_back(send{session_resumed{resume_token_->token(), inputs_, last_event_id_ - seen}, spoken_, id()});
  out_.emplace_back(send_again{seen});
  return take();
}

// ---- the queue

effects session_machine::on_queued(queue_position place, time_point) {
  if (state_ == session_state::queued) {
    told_to_wait_ = true;
    say(session_queued{std::move(place)});
  }
  return take();
}

effects session_machine::on_queue_update(queue_position place, time_point) {
  if (state_ == session_state::queued) say(session_queue_update{std::move(place)});
  return take();
}

effects session_machine::on_granted(time_point now) {
  perform(session_event::worker_assigned, {.now = now});
  return take();
}

effects session_machine::on_refused(error_code code, std::string message, time_point now) {
  if (holding_ != holding::ticket) return {};
  holding_ = holding::nothing;
  perform(session_event::refused, {.now = now, .refusal = {code, std::move(message)}});
  return take();
}

// ---- the engine

effects session_machine::on_engine(conversation::event answer, time_point now) {
  using namespace conversation;
  if (auto* of = std::get_if<opened>(&answer)) return on_engine_opened(*of, now);
  if (auto* of = std::get_if<step_output>(&answer)) return on_step(std::move(*of), now);
  if (auto* of = std::get_if<chat_delta>(&answer)) return on_chat_delta(std::move(*of), now);
  if (auto* of = std::get_if<chat_done>(&answer)) return on_chat_done(std::move(*of), now);
  if (auto* of = std::get_if<failed>(&answer)) return on_engine_failed(std::move(*of), now);
  if (std::holds_alternative<closed>(answer)) return on_engine_closed(now);
  return {}; // `replayed` concerns whoever replays
}

effects session_machine::on_engine_opened(const conversation::opened& answer, time_point now) {
  perform(session_event::engine_ready, {.now = now, .opened = &answer});
  return take();
}

effects session_machine::on_engine_failed(conversation::failed failure, time_point now) {
  if (state_ == session_state::active) {
    const bool known = chat_ ? its_chat().is_running(failure.number) : its_duplex().is_running(failure.number);
    if (!known) {
      auto out = writer();
      if (chat_) its_chat().on_abandoned_end(failure.number, out);
      return take();
    }
  }
  const bool ours = failure.kind == conversation::failure_kind::inference;
  perform(ours ? session_event::engine_failure : session_event::engine_refusal, {.now = now, .failure = &failure});
  return take();
}

effects session_machine::on_step(conversation::step_output output, time_point now) {
  if (state_ != session_state::active || !duplex_) return {};
  auto out = writer();
  follow(its_duplex().on_output(std::move(output), now, out));
  return take();
}

effects session_machine::on_chat_delta(conversation::chat_delta delta, time_point) {
  if (state_ != session_state::active || !chat_) return {};
  auto out = writer();
  its_chat().on_delta(std::move(delta), out);
  return take();
}

effects session_machine::on_chat_done(conversation::chat_done done, time_point now) {
  if (state_ != session_state::active || !chat_) return {};
  auto out = writer();
  const std::uint64_t turn = done.turn;
  if (its_chat().on_done(std::move(done), now, out)) {
    failures_in_a_row_ = 0;
    idle_since_ = now;
  } else {
    its_chat().on_abandoned_end(turn, out);
  }
  wind_chat_clocks();
  return take();
}

effects session_machine::on_engine_closed(time_point) {
  if (holding_ != holding::ending_engine) return {};
  holding_ = holding::nothing;
  writer().order(release_worker{});
  return take();
}

effects session_machine::on_worker_lost(time_point now) {
  if (!holds_worker()) return {};
  holding_ = holding::nothing;
  perform(session_event::worker_lost, {.now = now});
  return take();
}

effects session_machine::on_work_lost_twice(time_point now) {
  if (!holds_worker()) return {};
  holding_ = holding::nothing;
  perform(session_event::work_lost_twice, {.now = now});
  return take();
}

effects session_machine::on_restored(time_point now) {
  if (state_ != session_state::active || holding_ != holding::engine || !clocks_.runs(session_clock::failover))
    return {};
  clocks_.stop(session_clock::failover);
  auto out = writer();
  if (chat_) {
    its_chat().on_restored(out);
  } else {
    follow(its_duplex().on_restored(now, out));
  }
  return take();
}

// ---- the server

effects session_machine::on_drain(time_point now) {
  if (draining_) return {};
  perform(session_event::drain, {.now = now, .refusal = {error_code::service_unavailable, "the server shuts down"}});
  draining_ = true;
  return take();
}

effects session_machine::on_taken_up(time_point now) {
  PARLEY_ASSERT(state_ == session_state::active, "only a session that talks is taken up");
  out_.clear();
  clocks_.stop(session_clock::failover);
  clocks_.stop(session_clock::drain);
  clocks_.set(session_clock::resume, now + limits_.resume);
  draining_ = false;
  most_claimed_ = last_event_id_ + max_lost_events;
  holding_ = holding::nothing;
  unjudged_.clear(); // nobody judges these any more
  perform(session_event::worker_lost, {.now = now});
  return take();
}

effects session_machine::on_handover(std::chrono::milliseconds back_after, time_point) {
  say(session_go_away{"server_restart", 0, back_after.count()});
  writer().order(close_link{service_restart, "server_restart"});
  return take();
}

effects session_machine::on_quota_low(std::chrono::milliseconds left, time_point) {
  if (!created_ || state_ == session_state::closed || std::exchange(warned_of_quota_, true)) return {};
  say(session_go_away{std::string(close_word(close_cause::quota, spoken_)), left.count()});
  return take();
}

effects session_machine::on_quota_spent(std::string words, time_point) {
  if (state_ == session_state::closed) return {};
  constexpr auto code = error_code::quota_exceeded;
  say(error_event{code, std::move(words)});
  created_ ? end(close_cause::quota) : hang_up(traits(code).close_code, std::string(traits(code).wire));
  return take();
}

effects session_machine::on_fault(time_point now) {
  out_.clear();
  perform(session_event::fault, {.now = now});
  return take();
}

effects session_machine::tick(time_point now) {
  for (auto due = clocks_.earliest(); due && due->second <= now; due = clocks_.earliest()) {
    clocks_.stop(due->first);
    expire(due->first, now);
  }
  return take();
}

std::optional<time_point> session_machine::next_deadline() const {
  const auto due = clocks_.earliest();
  return due ? std::optional(due->second) : std::nullopt;
}

usage session_machine::total() const {
  if (chat_) return chat_->total();
  return duplex_ ? duplex_->total() : usage{};
}

// ---- dispatch

session_event session_machine::classify(const envelope& frame) const {
  switch (frame.type) {
  case client_event_type::session_init:
    return spoken_ == dialect::legacy ? session_event::init_foreign : session_event::init;
  case client_event_type::session_update:
    return mode_ == mode::chat || spoken_ == dialect::current ? session_event::init_foreign : session_event::init;
  case client_event_type::input_append:
    return spoken_ == dialect::legacy ? session_event::append_foreign : session_event::append_own;
  case client_event_type::input_audio_buffer_append:
    return spoken_ == dialect::current ? session_event::append_foreign : session_event::append_own;
  case client_event_type::input_standalone:
    if (!limits_.knows_functions) break;
    return spoken_ == dialect::legacy || mode_ == mode::chat ? session_event::append_foreign
                                                             : session_event::append_own;
  case client_event_type::input_tool_result:
    if (!limits_.knows_functions) break;
    return spoken_ == dialect::legacy || mode_ == mode::chat ? session_event::append_foreign
                                                             : session_event::tool_result;
  case client_event_type::session_close: return session_event::close;
  case client_event_type::unknown: break;
  }
  return session_event::other;
}

/// Clients inside the process speak the current dialect.
session_event session_machine::classify(const result<client_event>& event) const {
  if (event && std::holds_alternative<close_event>(*event)) return session_event::close;
  if (event && std::holds_alternative<tool_result_event>(*event))
    return mode_ == mode::chat ? session_event::append_foreign : session_event::tool_result;
  return event && std::holds_alternative<init_event>(*event) ? session_event::init : session_event::append_own;
}

void session_machine::perform(session_event event, const occurrence& what) {
  const time_point now = what.now;
  if (state_ == session_state::active &&
      (event == session_event::append_own || event == session_event::append_foreign)) {
    ++inputs_;
    idle_since_ = now;
  }
  const std::string_view name = what.name;
  switch (lookup(event, state_)) {
  case action::ignore: break;
  case action::impossible: PARLEY_ASSERT(false, "the shell causes what the state allows"); break;
  case action::connect: connect(now); break;
  case action::give_back: writer().order(release_worker{}); break;
  case action::hold_init:
  case action::begin_init: read_init(what); break;
  case action::say_not_ready:
    reject({error_code::not_ready, std::string(name) + " before session.created"}, now);
    break;
  case action::say_invalid_event:
    reject({error_code::invalid_event, std::string(name) + " is not allowed in this state, mode or dialect"}, now);
    break;
  case action::say_unknown_event:
    reject({error_code::unknown_event, "unknown event type " + std::string(name)}, now);
    break;
  case action::take_append: take_append(what); break;
  case action::take_result: take_result(what); break;
  case action::leave: {
    const std::string asked = what.frame ? decode_close(*what.frame).reason : std::string(what.reason);
    auto out = writer();
    if (chat_) its_chat().on_leave(now, out);
    end(close_cause::client, asked);
    break;
  }
  case action::begin_talk: begin_talk(what.its_opened(), now); break;
  case action::refuse_init:
    back_to_connected();
    reject({error_code::invalid_payload, what.its_failure().message}, now);
    break;
  case action::fail_init: fail_init(what.its_failure()); break;
  case action::refuse_input: refuse_input(what.its_failure(), now); break;
  case action::fail_input: fail_input(what.its_failure(), now); break;
  case action::queue_again: queue_again(); break;
  case action::move_on: move_on(now); break;
  case action::restore:
    if (holding_ != holding::ticket) break;
    holding_ = holding::engine;
    writer().order(restore_session{});
    break;
  case action::turn_away:
    say(error_event{what.refusal.code, what.refusal.message});
    hang_up(traits(what.refusal.code).close_code, std::string(traits(what.refusal.code).wire));
    break;
  case action::lose_backend: end(close_cause::backend); break;
  case action::give_up:
    say(error_event{error_code::inference_error, "two workers were lost with the same work; no third one gets it"});
    end(close_cause::backend);
    break;
  case action::time_out: end(close_cause::timeout); break;
  case action::shut_down:
    if (!draining_) say(session_go_away{std::string(close_word(close_cause::shutdown, spoken_)), 0});
    end(close_cause::shutdown);
    break;
  case action::grace:
    if (clocks_.runs(session_clock::resume)) { // nobody could resume it any more
      end(close_cause::shutdown);
      break;
    }
    clocks_.set(session_clock::drain, now + limits_.drain);
    say(session_go_away{std::string(close_word(close_cause::shutdown, spoken_)), limits_.drain.count()});
    break;
  case action::part:
    if (resume_token_ && !draining_) {
      clocks_.set(session_clock::resume, now + limits_.resume);
      break;
    }
    [[fallthrough]];
  case action::vanish:
    ended_as_ = session_end::client_closed;
    closed_reason_ = word_of(ended_as_);
    let_go();
    break;
  }
  wind_chat_clocks();
}

} // namespace parley::protocol
