#include "inference/decoding/unit_decoder.hpp"

#include "inference/decoding/mark_filter.hpp"

#include <algorithm>
#include <utility>

namespace parley::inference::duplex {

namespace {

int code_points(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

} // namespace

control_tokens control_tokens::of(const tokenizer& tokens) {
  return {tokens.id("<unit>"),       tokens.id("</unit>"),       tokens.id("<|listen|>"),
          tokens.id("<|speak|>"),    tokens.id("<|chunk_eos|>"), tokens.id("<|chunk_tts_eos|>"),
          tokens.id("<|turn_eos|>"), tokens.id("<|tts_bos|>")};
}

unit_decoder::unit_decoder(tokenizer tokens, const quirks& how, unit_decoder_options options)
    : tokens_(std::move(tokens)), control_(control_tokens::of(tokens_)), how_(how), options_(options) {}

void unit_decoder::begin(bool force_listen) {
  outcome_ = {};
  index_ = 0;
  turn_was_open_ = !turn_ended_;
  saw_turn_end_ = drew_terminator_ = false;
  forced_ = units_++ < options_.force_listen_count || force_listen || std::exchange(listen_next_, false);
  closing_turn_ = force_listen && !turn_ended_;
  if (closing_turn_) {
    outcome_.appended.push_back(control_.turn_eos);
    token_ = control_.turn_eos;
    next_ = wants::feed;
    return;
  }
  step();
}

void unit_decoder::step() {
  if (index_ == options_.max_new_tokens || (options_.explicit_mode && index_ == options_.max_new_tokens - 1)) {
    if (options_.explicit_mode)
      stop(control_.chunk_eos);
    else
      finish();
  } else if (forced_) {
    choose(control_.listen);
  } else {
    next_ = wants::draw;
  }
}

void unit_decoder::sampled(token_id token) {
  if (token == control_.listen && !turn_ended_) token = control_.tts_bos;
  ++outcome_.sampled;
  drew_terminator_ = is_terminator(token);
  choose(token);
}

void unit_decoder::choose(token_id token) {
  outcome_.is_listen = token == control_.listen;
  if (is_terminator(token)) {
    if (options_.explicit_mode) outcome_.terminator = token;
    outcome_.appended.push_back(token);
    finish();
    return;
  }
  ended_before_choice_ = std::exchange(turn_ended_, false);
  if (index_ > 0) {
    outcome_.ids.push_back(token);
    auto full = code_points(tokens_.decode(outcome_.ids, true)) >= options_.max_characters;
    outcome_.ids.pop_back();
    if (full) {
      --outcome_.sampled;
      if (options_.explicit_mode)
        stop(control_.chunk_eos);
      else
        finish();
      return;
    }
  }
  outcome_.appended.push_back(token);
  token_ = token;
  next_ = wants::feed;
}

bool unit_decoder::fed() {
  if (closing_turn_) {
    closing_turn_ = false;
    turn_ended_ = true;
    if (outcome_.cut)
      choose(control_.listen);
    else
      step();
    return false;
  }
  outcome_.end_of_turn = token_ == control_.turn_eos;
  if (outcome_.end_of_turn) turn_ended_ = saw_turn_end_ = true;
  auto told = index_ > 0 || (!how_.first_text_token_is_lost && !tokens_.is_special(token_));
  if (told) outcome_.ids.push_back(token_);
  ++index_;
  step();
  return told;
}

void unit_decoder::cut() {
  if (next_ == wants::nothing || outcome_.cut) return;
  outcome_.cut = true;
  forced_ = true;
  if (closing_turn_) return;
  if (next_ == wants::feed) {
    // The token was chosen, but the model never saw it: drop it.
    outcome_.appended.pop_back();
    --outcome_.sampled;
    turn_ended_ = ended_before_choice_;
  }
  break_off();
}

void unit_decoder::recall() {
  if (next_ != wants::nothing || outcome_.is_listen) return;
  outcome_.cut = true;
  forced_ = true;
  listen_next_ = false;
  if (outcome_.terminator) {
    outcome_.terminator.reset();
    outcome_.appended.pop_back();
    outcome_.sampled -= drew_terminator_;
  }
  break_off();
}

/// Ends the turn inside the model, then listens.
void unit_decoder::break_off() {
  if (turn_ended_) {
    choose(control_.listen);
    return;
  }
  closing_turn_ = true;
  outcome_.appended.push_back(control_.turn_eos);
  token_ = control_.turn_eos;
  next_ = wants::feed;
}

void unit_decoder::stop(token_id terminator) {
  outcome_.terminator = terminator;
  outcome_.appended.push_back(terminator);
  finish();
}

void unit_decoder::finish() {
  next_ = wants::nothing;
  outcome_.text = chat::without_marks(tokens_.decode(outcome_.ids, true));
  if (outcome_.cut) {
    outcome_.is_listen = true;
    outcome_.end_of_turn = false;
    outcome_.text.clear();
  } else if (outcome_.is_listen) {
    if (!how_.listen_after_turn_end_drops_text && saw_turn_end_ && (turn_was_open_ || !outcome_.text.empty())) {
      outcome_.is_listen = false;
      outcome_.end_of_turn = true;
      listen_next_ = true;
    } else {
      outcome_.end_of_turn = false;
      outcome_.text.clear();
    }
  }
}

bool unit_decoder::is_terminator(token_id token) const {
  return token == control_.listen || token == control_.chunk_eos || token == control_.chunk_tts_eos;
}

} // namespace parley::inference::duplex
