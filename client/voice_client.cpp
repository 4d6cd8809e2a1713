#include "client/voice_client.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace parley::client {
namespace {

constexpr double deadline = 1; ///< seconds; a later second of an answer is a miss
constexpr double closing_time = 10;
constexpr double piece_seconds = 0.1;

latencies::seconds between(double from, double to) {
  return latencies::seconds(std::max(0.0, to - from));
}

} // namespace

voice_client::voice_client(const load_scenario& role, const voice_traits& traits, const load_script& script,
                           const load_habits& habits, double end, voice_hands& hands, load_figures& into)
    : traits_(traits), habits_(&habits), end_(end), hands_(&hands), into_(&into), pace_(script, habits, role.seed),
      silent_unit_(script.silent_unit()), ear_(listener::seconds(habits.playback_lead)) {}

void voice_client::connecting(double now) {
  ++into_->asked;
  connected_ = now;
  hands_->wake_at(std::max(end_, now));
}

void voice_client::heard(double now, const voice_event& event) {
  using kind = voice_event::kind;
  if (state_ == state::over) return;
  switch (event.what) {
  case kind::greeted: return greet(now);
  case kind::ready:
    if (state_ == state::initialising) return begin(now);
    probed_ = false;
    return go_on(now);
  case kind::answer_begins: return begin_answer();
  case kind::words: return take_words(now);
  case kind::sound: return take_sound(now, event.samples);
  case kind::answer_ends:
    if (!event.code.empty()) fail(event.code);
    return end_answer(now, event.cancelled);
  case kind::error: return fail(event.code);
  case kind::closed:
    if (state_ != state::closing)
      fail("closed:" + event.code);
    else if (held_)
      ++into_->completed;
    return finish();
  case kind::other: return;
  }
}

void voice_client::greet(double now) {
  if (state_ != state::connecting) return;
  into_->queue_done.add(between(connected_, now));
  state_ = state::initialising;
  asked_ = now;
  hands_->send_begin();
}

void voice_client::begin(double now) {
  state_ = state::active;
  held_ = true;
  ++into_->held;
  into_->created.add(between(asked_, now));
  first_due_ = next_due_ = now;
  send_due(now);
}

void voice_client::woken(double now) {
  switch (state_) {
  case state::connecting:
  case state::initialising: fail("not_created"); return close(now);
  case state::active: return send_due(now);
  case state::closing: // waiting for the server to close
    fail("close_unanswered");
    finish();
    return hands_->leave();
  case state::over: return;
  }
}

// ---- what is said

void voice_client::send_due(double now) {
  if (now >= end_) return close(now);
  into_->lateness.add(between(next_due_, now));
  if (habits_->fast) return send_second(now);
  send_piece();
  next_due_ = first_due_ + pace_.due(said_, piece_seconds);
  hands_->wake_at(std::min(next_due_, std::max(end_, now)));
}

void voice_client::send_piece() {
  if (piece_ == 0) {
    unit_ = pace_.next_unit();
    const bool silent = unit_ == silent_unit_;
    if (!silent && !talking_) talks_since_ = next_due_;
    talking_ = !silent;
    ++into_->units;
  }
  newest_due_ = next_due_;
  hands_->send_piece(unit_, piece_);
  piece_ = (piece_ + 1) % pieces_per_unit;
  ++said_;
}

void voice_client::send_second(double now) {
  next_due_ = now;
  for (std::size_t i = 0; i < pieces_per_unit; ++i) send_piece();
  hands_->send_probe();
  probed_ = true;
  awaits_answer_ = speaking_ && !traits_.paced;
  hands_->wake_at(std::max(end_, now));
}

/// Fast, the next second follows when the last one has been dealt with.
void voice_client::go_on(double now) {
  if (habits_->fast && state_ == state::active && !probed_ && !awaits_answer_) {
    next_due_ = now;
    send_due(now);
  }
}

// ---- what the model says

void voice_client::begin_answer() {
  speaking_ = true;
  has_text_ = has_sound_ = false;
  answer_due_ = newest_due_;
  received_ = 0;
  measured_ = -1;
}

/// Of a dialect that does not say where an answer ends.
void voice_client::pause_ends(double now) {
  if (speaking_ && now - last_output_ > traits_.pause) end_answer(now, false);
  last_output_ = now;
  if (!speaking_) begin_answer();
}

void voice_client::take_words(double now) {
  pause_ends(now);
  if (!std::exchange(has_text_, true)) into_->first_text.add(between(answer_due_, now));
}

void voice_client::take_sound(double now, std::size_t samples) {
  pause_ends(now);
  if (!std::exchange(has_sound_, true)) into_->first_sound.add(between(answer_due_, now));
  const double begins = received_;
  received_ += static_cast<double>(samples) / listener::rate;
  into_->sound_seconds += static_cast<double>(samples) / listener::rate;
  ear_.sound(listener::seconds(now), samples);
  const auto second = static_cast<std::int64_t>(std::ceil(begins - 1e-6));
  if (second > measured_) {
    measured_ = second;
    const double due = habits_->fast && !traits_.paced ? newest_due_
                       : traits_.paced                 ? answer_due_ + begins
                                                       : answer_due_ + static_cast<double>(second);
    const double latency = std::max(0.0, now - due);
    ++into_->answered;
    ++into_->spoken;
    into_->missed += latency > deadline ? 1 : 0;
    into_->answers.push_back({static_cast<float>(due), static_cast<float>(latency)});
    if (pace_.interrupts()) pace_.speak_up();
  }
  awaits_answer_ = false;
  go_on(now);
}

void voice_client::end_answer(double now, bool cancelled) {
  if (!std::exchange(speaking_, false)) return;
  ++into_->turns;
  if (cancelled) {
    ear_.silence(listener::seconds(now));
    ++into_->interruptions;
    into_->silenced.add(between(talks_since_, now));
  } else {
    ear_.end_of_turn();
  }
  awaits_answer_ = false;
  go_on(now);
}

// ---- the end

void voice_client::close(double now) {
  // An answer that has not ended owes its next second; one that is already late is a miss.
  if (speaking_ && !traits_.paced && !habits_->fast && now - (answer_due_ + std::ceil(received_ - 1e-6)) > deadline)
    ++into_->unanswered;
  const bool talks = state_ == state::active && traits_.says_goodbye;
  state_ = state::closing;
  hands_->wake_at(now + closing_time);
  hands_->send_close();
  // A microphone goes on until the server has closed.
  for (std::size_t i = 0; talks && i < pieces_per_unit; ++i) hands_->send_piece(unit_, i);
}

void voice_client::ended(double, std::string_view failure) {
  if (state_ == state::over) return;
  if (!failure.empty())
    fail(failure);
  else if (state_ != state::closing)
    fail("connection_closed");
  else if (traits_.says_goodbye)
    fail("close_unanswered");
  else if (held_)
    ++into_->completed;
  finish();
}

void voice_client::finish() {
  into_->gaps += static_cast<std::int64_t>(ear_.gaps());
  into_->gap_seconds += ear_.gap_time().count();
  state_ = state::over;
}

void voice_client::broke_rule(std::string_view what) {
  ++into_->violations;
  fail("violation:" + std::string(what));
}

void voice_client::fail(std::string_view code) {
  ++into_->errors[error_name(code)];
}

} // namespace parley::client
