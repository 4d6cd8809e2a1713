#include "actors/replay/replay_buffer.hpp"

#include "actors/bytes/unit_bounds.hpp"

#include <algorithm>
#include <utility>

namespace parley::actors {

namespace {

/// A step answers with one text and one sound, or is cut short; after a move, once more.
constexpr std::size_t most_unit_answers = 16;

std::size_t words_in(const conversation::chat_delta& delta) {
  auto bytes = delta.text.size();
  for (const auto& piece : delta.calls) bytes += piece.name.size() + piece.arguments.size();
  return bytes;
}

/// Enough to keep an engine busy, but not too many for its helper threads.
constexpr std::size_t most_under_way = 4;

} // namespace

std::size_t replay_buffer::past_unit::bytes() const {
  const auto& of = *choices;
  const std::size_t all = sizeof(past_unit) + sizeof(conversation::unit_choices) + input.bytes();
  return all + (of.sampled.capacity() + of.remembered.capacity() + of.spoken.capacity()) * sizeof(std::int64_t);
}

conversation::command replay_buffer::enter(conversation::command order) {
  if (const auto* duplex = std::get_if<conversation::open_duplex>(&order)) {
    *this = replay_buffer(most_bytes_);
    opening_ = *duplex;
  } else if (const auto* chat = std::get_if<conversation::open_chat>(&order)) {
    *this = replay_buffer(most_bytes_);
    opening_ = *chat;
  } else if (auto* unit = std::get_if<conversation::submit_unit>(&order)) {
    if (unit_ && unit_->number == unit->unit)
      unit->replay = unit_->choices;
    else
      unit_ = past_unit{unit->unit,
                        {compact_pcm(unit->samples), unit->frames, unit->context},
                        unit->max_slice_nums,
                        unit->force_listen,
                        nullptr};
    answers_ = 0;
  } else if (auto* turn = std::get_if<conversation::submit_turn>(&order)) {
    if (turn_ == turn->turn) {
      turn->replay = std::make_shared<const conversation::turn_choices>(said_);
    } else {
      turn_ = turn->turn;
      said_ = {};
      said_bytes_ = 0;
    }
  }
  return order;
}

std::optional<std::uint64_t> replay_buffer::endless(const conversation::event& answer) const {
  if (const auto* output = std::get_if<conversation::step_output>(&answer))
    return unit_ && unit_->number == output->unit && answers_ >= most_unit_answers ? std::optional(output->unit)
                                                                                   : std::nullopt;
  const auto* delta = std::get_if<conversation::chat_delta>(&answer);
  if (!delta || turn_ != delta->turn) return std::nullopt;
  const auto samples = said_.samples + (delta->audio ? delta->audio->size() : 0);
  const auto tokens = said_.sampled.size() + delta->sampled.size() + said_.spoken.size() + delta->spoken.size();
  const auto pieces = said_.scores + delta->scores.size() + said_.call_pieces + delta->calls.size();
  const auto most = static_cast<std::size_t>(most_token_ids);
  const bool too_much =
      said_bytes_ + words_in(*delta) > most_text_bytes || samples > most_samples || tokens > most || pieces > most;
  return too_much ? std::optional(delta->turn) : std::nullopt;
}

void replay_buffer::note(const conversation::event& answer) {
  if (const auto* opened = std::get_if<conversation::opened>(&answer)) {
    if (auto* duplex = std::get_if<conversation::open_duplex>(&opening_)) duplex->seed = opened->seed;
    if (auto* chat = std::get_if<conversation::open_chat>(&opening_)) chat->seed = opened->seed;
    opened_ = reopened_ = true;
  } else if (const auto* output = std::get_if<conversation::step_output>(&answer)) {
    on_unit_answered(*output);
  } else if (const auto* delta = std::get_if<conversation::chat_delta>(&answer)) {
    on_delta(*delta);
  } else if (const auto* done = std::get_if<conversation::chat_done>(&answer)) {
    if (turn_ != done->turn) return;
    turn_.reset();
    if (auto* chat = std::get_if<conversation::open_chat>(&opening_)) chat->chance = done->after;
  } else if (std::holds_alternative<conversation::replayed>(answer)) {
    if (confirmed_ < sent_) ++confirmed_;
  } else if (const auto* failed = std::get_if<conversation::failed>(&answer); failed && !moving()) {
    if (unit_ && unit_->number == failed->number) unit_.reset();
    if (turn_ == failed->number) turn_.reset();
  }
}

void replay_buffer::on_unit_answered(const conversation::step_output& output) {
  if (!unit_ || unit_->number != output.unit) return;
  unit_->choices = output.choices;
  ++answers_;
  if (!output.last) return;
  auto answered = std::move(*unit_);
  unit_.reset();
  keep(std::move(answered));
}

void replay_buffer::keep(past_unit unit) {
  if (overflown_) return;
  if (!unit.choices) return give_up(); // from an engine that does not report its choices
  bytes_ += unit.bytes();
  past_.push_back(std::move(unit));
  sent_ = confirmed_ = past_.size();
  if (bytes_ > most_bytes_) give_up();
}

void replay_buffer::give_up() {
  overflown_ = true;
  past_ = {};
  bytes_ = sent_ = confirmed_ = 0;
}

void replay_buffer::on_delta(const conversation::chat_delta& delta) {
  if (turn_ != delta.turn) return;
  said_.sampled.insert(said_.sampled.end(), delta.sampled.begin(), delta.sampled.end());
  said_.spoken.insert(said_.spoken.end(), delta.spoken.begin(), delta.spoken.end());
  said_.text_bytes += delta.text.size();
  said_bytes_ += words_in(delta);
  said_.scores += delta.scores.size();
  said_.call_pieces += delta.calls.size();
  if (delta.audio) said_.samples += delta.audio->size();
}

void replay_buffer::rewind() {
  reopened_ = asked_to_open_ = false;
  sent_ = confirmed_ = 0;
  // The speech of turns that are over no longer matters.
  audible_ = past_.size();
  while (audible_ > 0 && past_[audible_ - 1].choices->voice_open) --audible_;
}

std::optional<conversation::command> replay_buffer::next(conversation::session_id as) {
  if (!whole()) return std::nullopt;
  if (!std::exchange(asked_to_open_, true)) {
    if (auto* duplex = std::get_if<conversation::open_duplex>(&opening_)) {
      duplex->session = as;
      return *duplex;
    }
    auto& chat = std::get<conversation::open_chat>(opening_);
    chat.session = as;
    return chat;
  }
  if (!reopened_ || sent_ == past_.size() || sent_ - confirmed_ >= most_under_way) return std::nullopt;
  auto order = order_of(past_[sent_]);
  order.session = as;
  order.mute = sent_ < audible_;
  ++sent_;
  return order;
}

conversation::submit_unit replay_buffer::order_of(const past_unit& unit) {
  conversation::submit_unit order{};
  order.unit = unit.number;
  static_cast<conversation::unit_input&>(order) = {unit.input.sound.samples(), unit.input.frames, unit.max_slice_nums,
                                                   unit.force_listen, unit.input.context};
  order.replay = unit.choices;
  return order;
}

} // namespace parley::actors
