#include "protocol/session/duplex_flow.hpp"

#include "base/assert.hpp"
#include "protocol/session/engine_words.hpp"

#include <algorithm>
#include <utility>

namespace parley::protocol {

namespace {

using milliseconds_f = std::chrono::duration<double, std::milli>;

speaking_turn::naming naming_of(const init_event& init) {
  return init.unit_responses ? speaking_turn::naming::by_unit : speaking_turn::naming::by_turn;
}

/// With `config.listen_at_turn_end`: the event that follows the last delta of a turn in the same second.
output_delta listen_after(const output_delta& last) {
  output_delta listen;
  listen.kind = output_kind::listen;
  listen.response_id = last.response_id;
  listen.input_id = last.input_id;
  listen.measured = last.measured;
  listen.turn_id = last.turn_id;
  listen.closes_turn = true;
  return listen;
}

} // namespace

duplex_flow::duplex_flow(const session_limits& limits, std::shared_ptr<const init_event> init,
                         const conversation::opened& opened, random_source& random)
    : limits_(limits), init_(std::move(init)), bounded_(init_->config.window == window_mode::off),
      gatherer_(init_->max_slice_nums), backlog_(limits.failover.count() > 0 ? limits.failover_units : 0),
      turn_(random, limits.duplex_response_done, naming_of(*init_)), total_(opened.prompt_usage),
      prompt_tokens_(opened.prompt_tokens), kv_length_(opened.prompt_tokens) {}

flow_verdict duplex_flow::on_append(append_event event, std::uint64_t ordinal, time_point now, effect_writer& out) {
  if (event.force_listen && running_ && !running_->cut) {
    running_->cut = true;
    if (!suspended_) out.order(cut{});
  }
  const bool forced = event.force_listen;
  const std::string input_id = event.input_id;
  gatherer_.append(std::move(event), ordinal, now, completed_);
  if (forced && completed_.empty() && !running_) acknowledge(input_id, out);
  backlog_.push(completed_);
  const flow_verdict verdict = start_next(now, out);
  backlog_.trim(catching_up_ ? std::max(limits_.failover_units, limits_.backlog_units) : limits_.backlog_units,
                ordinal);
  return verdict;
}

bool duplex_flow::has_room(const std::vector<text_message>& context) const {
  if (context.empty()) return true;
  const auto waiting = backlog_.context_bytes() + bytes_of(gatherer_.pending_context());
  return waiting + bytes_of(context) <= max_waiting_context;
}

flow_verdict duplex_flow::on_output(conversation::step_output output, time_point now, effect_writer& out) {
  if (!is_running(output.unit)) return flow_verdict::go_on;
  PARLEY_ASSERT(running_, "a step is running");
  running_step& step = *running_;
  if (output.first && !step.named) step.used = output.used;
  if (output.metrics.kv_cache_length > 0) kv_length_ = output.metrics.kv_cache_length;
  const bool last = output.last;

  if (step.cut && output.kind != output_kind::listen) {
    if (!last) return flow_verdict::go_on;
    output.kind = output_kind::listen;
    output.end_of_turn = false;
  }
  if (output.kind == output_kind::text && step.text_left) { // sent before the worker was lost
    if (!last) return flow_verdict::go_on;
    output.text.clear();
  }
  if (!last && out.spoken == dialect::legacy) {
    step.held_text = std::move(output.text);
    return flow_verdict::go_on;
  }
  answer(std::move(output), now, out);
  if (!last) return flow_verdict::go_on;

  running_.reset();
  ++answered_steps_;
  warn_of_context(out);
  const flow_verdict verdict = start_next(now, out);
  return verdict == flow_verdict::context_full ? verdict : flow_verdict::answered;
}

void duplex_flow::on_failure(effect_writer& out) {
  PARLEY_ASSERT(running_, "a step is running");
  std::string turn_id = turn_.turn_id();
  turn_.finish("error", running_->unit.input_id, total_, out);
  close_unit("error", std::move(turn_id), out);
  running_.reset();
}

flow_verdict duplex_flow::on_restored(time_point now, effect_writer& out) {
  suspended_ = false;
  if (!running_) return start_next(now, out);
  submit(out);
  if (running_->cut) out.order(cut{});
  return flow_verdict::go_on;
}

flow_verdict duplex_flow::start_next(time_point now, effect_writer& out) {
  if (running_ || suspended_ || !backlog_.next()) return flow_verdict::go_on;
  if (bounded_ && kv_length_ + worst_case(*backlog_.next()) > limits_.context_tokens) return flow_verdict::context_full;
  auto next = backlog_.pop();
  PARLEY_ASSERT(next, "the backlog has a unit");
  running_ = running_step{};
  running_step& step = *running_;
  step.number = next_number_++;
  step.unit = std::move(*next);
  step.started = now;
  turn_.begin_unit();
  if (backlog_.size() <= limits_.backlog_units && now >= catch_up_until_) catching_up_ = false;
  submit(out);
  return flow_verdict::go_on;
}

/// Answers an append that forces listening but completes no unit, while nothing runs: otherwise a client that sends
/// nothing else would wait for ever. A running step that is cut answers by itself.
void duplex_flow::acknowledge(const std::string& input_id, effect_writer& out) {
  output_delta delta;
  delta.kind = output_kind::listen;
  delta.input_id = input_id;
  delta.response_id = turn_.fresh_id();
  delta.turn_id = turn_.turn_id();
  delta.measured.kv_cache_length = kv_length_;
  out.say(std::move(delta));
}

void duplex_flow::submit(effect_writer& out) const {
  PARLEY_ASSERT(running_, "a step is running");
  const gathered_unit& unit = running_->unit;
  out.order(submit_unit{{unit}, 0, running_->number});
}

void duplex_flow::answer(conversation::step_output&& output, time_point now, effect_writer& out) {
  PARLEY_ASSERT(running_, "a step is running");
  running_step& step = *running_;
  output_delta delta;
  delta.kind = output.kind;
  delta.input_id = step.unit.input_id;
  delta.end_of_turn = output.end_of_turn;
  delta.turn_id = turn_.turn_id();
  if (!std::exchange(step.named, true)) {
    total_ += step.used;
    delta.chunk_index = static_cast<std::int64_t>(step.number);
    delta.chunk_usage = step.used;
    delta.total = total_;
  }
  if (output.last) {
    delta.measured = full_metrics(output.metrics, now);
  } else {
    delta.measured.kv_cache_length = kv_length_;
  }

  listening_ = output.kind == output_kind::listen;
  if (listening_) {
    turn_.finish("cancelled", delta.input_id, total_, out);
    delta.response_id = turn_.listen();
    out.say(std::move(delta));
    return;
  }
  step.text_left |= output.kind == output_kind::text;
  delta.text = std::exchange(step.held_text, {}) + output.text;
  delta.audio = std::move(output.audio);
  delta.response_id = turn_.speak(delta.text);
  if (init_->unit_responses) step.said += delta.text;
  const bool end_of_turn = delta.end_of_turn;
  std::optional<output_delta> listen;
  if (output.last && end_of_turn && init_->listen_at_turn_end) listen = listen_after(delta);
  std::string turn_id = delta.turn_id;
  out.say(std::move(delta));
  if (end_of_turn) turn_.finish("turn_end", step.unit.input_id, total_, out);
  if (listen) {
    out.say(std::move(*listen));
  } else if (output.last) {
    close_unit(end_of_turn ? "turn_end" : "unit_end", std::move(turn_id), out);
  }
}

/// With `config.unit_responses`: the last event of a unit that was not answered by `listen`.
void duplex_flow::close_unit(std::string_view reason, std::string turn_id, effect_writer& out) {
  if (!init_->unit_responses) return;
  PARLEY_ASSERT(running_, "a step is running");
  running_step& step = *running_;
  response_done done{.response_id = turn_.listen(),
                     .input_id = step.unit.input_id,
                     .text = std::exchange(step.said, {}),
                     .audio = nullptr,
                     .reason = std::string(reason),
                     .measured = {},
                     .used = step.used,
                     .turn_id = std::move(turn_id)};
  done.measured.kv_cache_length = kv_length_;
  out.say(std::move(done));
}

metrics duplex_flow::full_metrics(const conversation::step_metrics& of, time_point now) const {
  PARLEY_ASSERT(running_, "a step is running");
  const running_step& step = *running_;
  metrics measured = wire_metrics(of);
  measured.kv_cache_length = kv_length_;
  measured.wall_clock_ms = milliseconds_f(now - step.started).count();
  measured.queue_ms = milliseconds_f(step.started - step.unit.received).count();
  measured.dropped_chunks = backlog_.dropped();
  measured.backlog_samples = static_cast<std::int64_t>(backlog_.size() * unit_samples + gatherer_.pending_samples());
  if (step.unit.frames.empty()) {
    measured.vision_slices.reset();
    measured.vision_tokens.reset();
  } else {
    measured.vision_slices = measured.vision_slices.value_or(0);
    measured.vision_tokens = measured.vision_tokens.value_or(0);
  }
  return measured;
}

void duplex_flow::warn_of_context(effect_writer& out) {
  if (!bounded_ || warned_ || kv_length_ < go_away_fill * limits_.context_tokens) return;
  warned_ = true;
  const double growth = std::max(1.0, static_cast<double>(kv_length_ - prompt_tokens_) / answered_steps_);
  const double steps = std::max(0, limits_.context_tokens - kv_length_) / growth;
  out.say(session_go_away{"context_full", static_cast<std::int64_t>(steps * 1000)});
}

int duplex_flow::worst_case(const gathered_unit& unit) const {
  return limits_.unit.most_rows(unit.frames.size(), unit.max_slice_nums, init_->config.max_new_speak_tokens_per_chunk);
}

} // namespace parley::protocol
