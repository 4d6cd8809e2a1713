#include "protocol/session/chat_flow.hpp"

#include "base/assert.hpp"
#include "protocol/session/engine_words.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace parley::protocol {

namespace {

using milliseconds_f = std::chrono::duration<double, std::milli>;

/// Puts the init's system prompt first if the conversation has none (docs/protocol.md 3.1).
void add_system_prompt(const init_event& init, std::vector<message>& messages) {
  const bool has_own =
      std::any_of(messages.begin(), messages.end(), [](const message& m) { return m.from == role::system; });
  if (!init.has_system_prompt || has_own) return;
  messages.insert(messages.begin(), message{role::system, {text_item{init.system_prompt}}});
}

} // namespace

void chat_flow::on_append(chat_append_event event, std::size_t bytes, time_point now, effect_writer& out) {
  add_system_prompt(*init_, event.messages);
  if (!event.names_tools) {
    event.tools = init_->offer.tools;
    event.tool_required = init_->offer.tool_required;
    event.tool_name = init_->offer.tool_name;
  }
  turn next;
  next.number = next_number_++;
  next.input_id = event.input_id;
  next.bytes = bytes;
  next.request = std::make_shared<const chat_append_event>(std::move(event));
  next.response_id = make_response_id(random_);
  next.received = now;
  pending_bytes_ += bytes;
  pending_.push_back(std::move(next));
  start_next(now, out);
}

void chat_flow::start_next(time_point now, effect_writer& out) {
  if (!running_ && !pending_.empty()) {
    running_ = std::move(pending_.front());
    pending_.pop_front();
    pending_bytes_ -= running_->bytes;
    running_->started = now;
  }
  submit(out);
}

void chat_flow::submit(effect_writer& out) {
  if (!running_ || running_->submitted || abandoned_ || suspended_) return;
  running_->submitted = true;
  out.order(submit_turn{*running_->request, 0, running_->number});
}

void chat_flow::on_delta(conversation::chat_delta delta, effect_writer& out) {
  if (!is_running(delta.turn)) return;
  PARLEY_ASSERT(running_, "a turn is running");
  turn& now_said = *running_;
  if (!delta.audio) now_said.text += delta.text;
  if (!now_said.request->streaming) {
    std::move(delta.scores.begin(), delta.scores.end(), std::back_inserter(now_said.scores));
    return;
  }
  if (!delta.audio && delta.text.empty() && delta.scores.empty()) return say_calls(std::move(delta.calls), out);
  output_delta told;
  told.kind = delta.audio ? output_kind::audio : output_kind::text;
  if (delta.audio) {
    told.audio = std::move(delta.audio);
  } else {
    told.text = std::move(delta.text);
  }
  told.scores = std::move(delta.scores);
  told.response_id = now_said.response_id;
  told.input_id = now_said.input_id;
  out.say(std::move(told));
  say_calls(std::move(delta.calls), out);
}

void chat_flow::say_calls(std::vector<conversation::call_piece> pieces, effect_writer& out) {
  PARLEY_ASSERT(running_, "a turn is running");
  turn& now_said = *running_;
  for (auto& piece : pieces) {
    while (now_said.calls.size() <= piece.number) now_said.calls.push_back(make_id(random_, "call_"));
    out.say(
        response_tool_call_delta{now_said.response_id,
                                 now_said.input_id,
                                 {now_said.calls[piece.number], std::move(piece.name), std::move(piece.arguments)}});
  }
}

bool chat_flow::on_done(conversation::chat_done done, time_point now, effect_writer& out) {
  if (!is_running(done.turn)) return false;
  std::string reason = "turn_end";
  if (done.reason == conversation::finish_reason::length) reason = "length";
  if (done.reason == conversation::finish_reason::cancelled) reason = "cancelled";
  const metrics measured = wire_metrics(done.metrics);
  end_turn(std::move(done), std::move(reason), measured, now, out);
  start_next(now, out);
  return true;
}

void chat_flow::on_failure(bool tell, time_point now, effect_writer& out) {
  if (tell) {
    end_turn(what_was_said(), "error", {}, now, out);
  } else {
    running_.reset();
  }
}

void chat_flow::on_abandoned_end(std::uint64_t turn, effect_writer& out) {
  if (abandoned_ != turn) return;
  abandoned_.reset();
  submit(out);
}

void chat_flow::on_turn_over(time_point now, effect_writer& out) {
  PARLEY_ASSERT(running_, "a turn is running");
  if (running_->submitted) {
    abandoned_ = running_->number;
    out.order(cancel_turn{});
  }
  end_turn(what_was_said(), "error", {}, now, out);
}

void chat_flow::on_leave(time_point now, effect_writer& out) {
  if (running_) end_turn(what_was_said(), "cancelled", {}, now, out);
}

void chat_flow::on_worker_lost() {
  suspended_ = true;
  abandoned_.reset();
  if (running_) running_->submitted = false;
}

void chat_flow::on_restored(effect_writer& out) {
  suspended_ = false;
  submit(out);
}

conversation::chat_done chat_flow::what_was_said() const {
  PARLEY_ASSERT(running_, "a turn is running");
  conversation::chat_done so_far;
  so_far.text = running_->text;
  return so_far;
}

void chat_flow::end_turn(conversation::chat_done done, std::string reason, const metrics& measured, time_point now,
                         effect_writer& out) {
  PARLEY_ASSERT(running_, "a turn is running");
  total_ += done.used;
  turn& over = *running_;
  for (std::size_t number = 0; number < done.calls.size(); ++number) {
    auto& call = done.calls[number];
    if (number < over.calls.size()) call.id = over.calls[number];
    if (call.id.empty()) call.id = make_id(random_, "call_");
    out.say(response_tool_call{over.response_id, over.input_id, std::move(call)});
  }
  response_done told{.response_id = over.response_id,
                     .input_id = over.input_id,
                     .text = std::move(done.text),
                     .audio = over.request->streaming ? nullptr : std::move(done.audio),
                     .reason = std::move(reason),
                     .measured = measured,
                     .used = done.used,
                     .scores = std::move(over.scores)};
  std::move(done.scores.begin(), done.scores.end(), std::back_inserter(told.scores));
  told.measured.wall_clock_ms = milliseconds_f(now - over.started).count();
  told.measured.queue_ms = milliseconds_f(over.started - over.received).count();
  out.say(std::move(told));
  running_.reset();
}

} // namespace parley::protocol
