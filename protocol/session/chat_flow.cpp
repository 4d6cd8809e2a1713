#include "protocol/session/chat_flow.hpp"

#include "base/assert.hpp"

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
  out.order(submit_turn{running_->number, running_->request});
}

void chat_flow::on_report(turn_report report, effect_writer& out) {
  if (!is_running(report.turn)) return;
  PARLEY_ASSERT(running_, "a turn is running");
  turn& now_said = *running_;
  if (!report.audio) now_said.text += report.text;
  if (!now_said.request->streaming) {
    std::move(report.scores.begin(), report.scores.end(), std::back_inserter(now_said.scores));
    return;
  }
  if (!report.audio && report.text.empty() && report.scores.empty()) return say_calls(std::move(report.calls), out);
  output_delta delta;
  delta.kind = report.audio ? output_kind::audio : output_kind::text;
  if (report.audio) {
    delta.audio = std::move(report.audio);
  } else {
    delta.text = std::move(report.text);
  }
  delta.scores = std::move(report.scores);
  delta.response_id = now_said.response_id;
  delta.input_id = now_said.input_id;
  out.say(std::move(delta));
  say_calls(std::move(report.calls), out);
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

bool chat_flow::on_done(turn_done_report report, time_point now, effect_writer& out) {
  if (!is_running(report.turn)) return false;
  std::string reason = "turn_end";
  if (report.reason == finish_reason::length) reason = "length";
  if (report.reason == finish_reason::cancelled) reason = "cancelled";
  end_turn(std::move(report), std::move(reason), now, out);
  start_next(now, out);
  return true;
}

void chat_flow::on_failure(bool tell, time_point now, effect_writer& out) {
  if (tell) {
    end_turn(what_was_said(), "error", now, out);
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
  end_turn(what_was_said(), "error", now, out);
}

void chat_flow::on_leave(time_point now, effect_writer& out) {
  if (running_) end_turn(what_was_said(), "cancelled", now, out);
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

turn_done_report chat_flow::what_was_said() const {
  PARLEY_ASSERT(running_, "a turn is running");
  turn_done_report report;
  report.text = running_->text;
  return report;
}

void chat_flow::end_turn(turn_done_report report, std::string reason, time_point now, effect_writer& out) {
  PARLEY_ASSERT(running_, "a turn is running");
  total_ += report.used;
  turn& over = *running_;
  for (std::size_t number = 0; number < report.calls.size(); ++number) {
    auto& call = report.calls[number];
    if (number < over.calls.size()) call.id = over.calls[number];
    if (call.id.empty()) call.id = make_id(random_, "call_");
    out.say(response_tool_call{over.response_id, over.input_id, std::move(call)});
  }
  response_done done{.response_id = over.response_id,
                     .input_id = over.input_id,
                     .text = std::move(report.text),
                     .audio = over.request->streaming ? nullptr : std::move(report.audio),
                     .reason = std::move(reason),
                     .measured = report.measured,
                     .used = report.used,
                     .scores = std::move(over.scores)};
  std::move(report.scores.begin(), report.scores.end(), std::back_inserter(done.scores));
  done.measured.wall_clock_ms = milliseconds_f(now - over.started).count();
  done.measured.queue_ms = milliseconds_f(over.started - over.received).count();
  out.say(std::move(done));
  running_.reset();
}

} // namespace parley::protocol
