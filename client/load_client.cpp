#include "client/load_client.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace parley::client {
namespace {

constexpr double deadline = 1; ///< seconds; a later answer is a miss
constexpr double closing_time = 10;

latencies::seconds between(double from, double to) {
  return latencies::seconds(std::max(0.0, to - from));
}

} // namespace

load_client::load_client(const load_scenario& role, const load_script& script, const load_habits& habits, double end,
                         load_hands& hands, load_figures& into)
    : role_(&role), habits_(&habits), end_(end), hands_(&hands), into_(&into), pace_(script, habits, role.seed),
      ear_(listener::seconds(habits.playback_lead)) {}

void load_client::connecting(double now) {
  ++into_->asked;
  connected_ = now;
  hands_->wake_at(std::max(end_, now));
}

void load_client::heard(double now, const server_glance& event) {
  using type = server_event_type;
  if (state_ == state::over) return;
  switch (event.type) {
  case type::queue_done:
    if (state_ != state::connecting) return;
    into_->queue_done.add(between(connected_, now));
    state_ = state::initialising;
    asked_ = now;
    return hands_->send_init();
  case type::created:
    if (state_ == state::initialising) begin(now);
    return;
  case type::listen:
  case type::spoken:
  case type::response_done:
    if (state_ == state::active) answer(now, event);
    return;
  case type::error:
    fail(event.error_code);
    if (state_ == state::active && chats() && !open_.empty()) finish_question(now);
    return;
  case type::closed:
    if (state_ != state::closing)
      fail("closed:" + event.reason);
    else if (held_)
      ++into_->completed;
    return finish(now);
  case type::queued:
  case type::queue_update:
  case type::go_away:
  case type::tool_call:
  case type::tool_call_delta:
  case type::resumed:
  case type::other: return;
  }
}

void load_client::begin(double now) {
  state_ = state::active;
  held_ = true;
  ++into_->held;
  into_->created.add(between(asked_, now));
  first_due_ = next_due_ = now;
  send_chunk(now);
}

void load_client::send_chunk(double now) {
  if (now >= end_) return close(now);
  into_->lateness.add(between(next_due_, now));
  ++into_->units;
  ++said_;
  if (chats()) {
    open_.push_back(next_due_);
    turn_has_text_ = turn_has_sound_ = false;
    hands_->send_question();
    return hands_->wake_at(std::max(end_, now));
  }
  const bool force = std::exchange(interrupt_, false);
  if (force) {
    ++into_->interruptions;
    silence_due_ = next_due_;
  }
  open_.push_back(next_due_);
  const bool told = pace_.tells_to_listen();
  hands_->send_unit(pace_.next_unit(), force || told);
  if (!habits_->fast) next_due_ = first_due_ + pace_.due(said_);
  hands_->wake_at(habits_->fast ? std::max(end_, now) : std::min(next_due_, std::max(end_, now)));
}

void load_client::woken(double now) {
  switch (state_) {
  case state::connecting:
  case state::initialising: fail("not_created"); return close(now);
  case state::active: return send_chunk(now);
  case state::closing: // waiting for the server to close
    fail("close_unanswered");
    finish(now);
    return hands_->leave();
  case state::over: return;
  }
}

void load_client::lost(double now) {
  lost_ = now;
}

void load_client::resumed(double now) {
  into_->returned.add(between(lost_, now));
}

void load_client::answer(double now, const server_glance& event) {
  if (chats()) {
    if (open_.empty()) return;
    take_output(now, event, open_.front());
    if (event.type == server_event_type::response_done) {
      if (event.reason == "error") fail("response_error");
      ++into_->turns;
      finish_question(now);
    }
    return;
  }
  // Legacy answers do not name their unit, but they come in order.
  const auto unit = event.input > 0 ? static_cast<std::size_t>(event.input - 1) : answered_;
  if (unit < answered_ || unit >= said_) return;
  take_output(now, event, open_[unit - answered_]);
  if (event.answers_unit) finish_unit(now, unit);
  into_->dropped += std::max<std::int64_t>(0, event.dropped_units - dropped_);
  dropped_ = std::max(dropped_, event.dropped_units);
}

void load_client::take_output(double now, const server_glance& event, double due) {
  if (event.type == server_event_type::listen) {
    ear_.silence(listener::seconds(now));
    turn_has_text_ = turn_has_sound_ = false;
    if (silence_due_) into_->silenced.add(between(*silence_due_, now));
    silence_due_.reset();
    return;
  }
  if (event.text) {
    if (!std::exchange(turn_has_text_, true)) into_->first_text.add(between(due, now));
    unit_spoke_ = true;
  }
  if (event.audio_samples > 0) {
    if (!std::exchange(turn_has_sound_, true)) into_->first_sound.add(between(due, now));
    ear_.sound(listener::seconds(now), event.audio_samples);
    into_->sound_seconds += static_cast<double>(event.audio_samples) / listener::rate;
    unit_spoke_ = true;
  }
  if (event.end_of_turn) {
    ear_.end_of_turn();
    turn_has_text_ = turn_has_sound_ = false;
    ++into_->turns;
  }
}

void load_client::finish_unit(double now, std::size_t unit) {
  const auto skipped = unit - answered_; // older units that the server dropped
  into_->unanswered += static_cast<std::int64_t>(skipped);
  const auto due = open_[skipped];
  open_.erase(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(skipped) + 1);
  answered_ = unit + 1;
  const auto latency = now - due;
  ++into_->answered;
  into_->missed += latency > deadline ? 1 : 0;
  into_->answers.push_back({static_cast<float>(due), static_cast<float>(std::max(0.0, latency))});
  if (std::exchange(unit_spoke_, false)) {
    ++into_->spoken;
    interrupt_ = interrupt_ || pace_.interrupts();
  }
  if (habits_->fast) {
    next_due_ = now;
    send_chunk(now);
  }
}

void load_client::finish_question(double now) {
  const auto due = open_.front();
  open_.pop_front();
  ++answered_;
  ++into_->answered;
  into_->whole_answer.add(between(due, now));
  into_->spoken += std::exchange(unit_spoke_, false) ? 1 : 0;
  ear_.end_of_turn();
  next_due_ = now + (habits_->fast ? 0 : pace_.thinking_time());
  hands_->wake_at(std::min(next_due_, std::max(end_, now)));
}

/// A microphone goes on until the server has closed.
void load_client::close(double now) {
  const bool talks = state_ == state::active && !chats();
  state_ = state::closing;
  hands_->send_close();
  if (talks) hands_->send_unit(pace_.next_unit(), false);
  hands_->wake_at(now + closing_time);
  give_up(now);
}

/// Unanswered units that are already late count as misses; the others might still have been answered in time.
void load_client::give_up(double now) {
  for (const auto due : open_)
    if (!chats() && now - due > deadline) ++into_->unanswered;
  open_.clear();
}

void load_client::ended(double now, std::string_view failure) {
  if (state_ == state::over) return;
  if (!failure.empty())
    fail(failure);
  else if (state_ != state::closing && !failed_)
    fail("connection_closed");
  finish(now);
}

void load_client::finish(double now) {
  give_up(now);
  into_->gaps += static_cast<std::int64_t>(ear_.gaps());
  into_->gap_seconds += ear_.gap_time().count();
  state_ = state::over;
}

void load_client::fail(std::string_view code) {
  failed_ = true;
  ++into_->errors[error_name(code)];
}

} // namespace parley::client
