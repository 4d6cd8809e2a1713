#include "protocol/trace/session_trace.hpp"

#include <chrono>
#include <utility>

namespace parley::protocol::trace {
namespace {

constexpr std::size_t most_calls = 64; ///< of one answer that get a span

double seconds_between(time_point from, time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string_view word_of(conversation::failure_kind kind) {
  switch (kind) {
  case conversation::failure_kind::invalid: return "invalid_payload";
  case conversation::failure_kind::context_full: return "context_full";
  case conversation::failure_kind::inference: return "inference_error";
  }
  return "inference_error";
}

/// The field's word for `response_done::reason`.
std::string_view finish_word(std::string_view reason, bool calls) {
  if (reason == "turn_end") return calls ? "tool_calls" : "stop";
  return reason;
}

} // namespace

// ---- a slot

void session_trace::enqueued(time_point now) {
  queue_ = out_.begin(now);
  queue_position_ = 0;
}

void session_trace::granted(std::string model, time_point now) {
  if (!model.empty()) model_ = std::move(model);
  end_queue({}, now);
}

void session_trace::end_queue(std::string_view error, time_point now) {
  if (!queue_) return;
  auto span = out_.made("queue", *queue_, now, failover_ ? &*failover_ : nullptr);
  if (queue_position_ > 0) span_writer::add(span, "parley.queue.position", queue_position_);
  out_.send(std::move(span), error);
  queue_.reset();
}

void session_trace::end_opening(std::string_view error, time_point now) {
  if (!opening_) return;
  auto span = out_.made("open", *opening_, now);
  if (prompt_tokens_ >= 0) span_writer::add(span, "parley.prompt.tokens", prompt_tokens_);
  out_.send(std::move(span), error);
  opening_.reset();
}

void session_trace::worker_lost(std::int64_t worker, time_point now) {
  end_opening("worker_lost", now);
  if (id_.empty() || failover_) return; // it has not begun, or moves already
  failover_ = out_.begin(now);
  lost_worker_ = worker;
}

void session_trace::restored(std::int64_t worker, time_point now) {
  next_worker_ = worker;
  end_failover({}, now);
}

void session_trace::end_failover(std::string_view error, time_point now) {
  if (!failover_) return;
  auto span = out_.made("failover", *failover_, now);
  span_writer::add(span, "parley.worker.lost", lost_worker_);
  if (error.empty()) span_writer::add(span, "parley.worker", next_worker_);
  out_.send(std::move(span), error);
  failover_.reset();
}

// ---- turns

void session_trace::submitted(bool chat, time_point now) {
  submitted_ = now;
  // A turn that was under way when its worker was lost is submitted again.
  if (!chat || turn_) return;
  turn_.emplace(turn{out_.begin(now), true});
}

void session_trace::sent(const server_event& event, mode kind, time_point now) {
  if (const auto* place = std::get_if<session_queued>(&event)) {
    queue_position_ = place->place.position;
  } else if (const auto* created = std::get_if<session_created>(&event)) {
    id_ = created->session_id;
    prompt_tokens_ = created->prompt_length.value_or(-1);
    end_opening({}, now);
  } else if (const auto* delta = std::get_if<output_delta>(&event)) {
    sent_delta(*delta, kind, now);
  } else if (const auto* call = std::get_if<response_tool_call>(&event)) {
    sent_call(*call, now);
  } else if (const auto* done = std::get_if<response_done>(&event)) {
    if (!turn_ || !turn_->chat) return;
    turn_->response_id = done->response_id;
    turn_->used = done->used.value_or(usage());
    if (done->audio && !turn_->first_sound) turn_->first_sound = now;
    if (done->reason == "error" && turn_->error.empty()) turn_->error = "inference_error";
    end_turn(finish_word(done->reason, turn_->calls > 0), now);
  } else if (const auto* error = std::get_if<error_event>(&event)) {
    const auto& about = traits(error->code);
    if (about.close_code != 0) refusal_ = about.wire;
  }
}

void session_trace::sent_delta(const output_delta& delta, mode kind, time_point now) {
  const bool chat = kind == mode::chat;
  if (delta.kind == output_kind::listen) {
    if (turn_ && !chat) end_turn(delta.closes_turn ? "stop" : "interrupted", now);
    return;
  }
  if (!turn_) {
    if (chat || (delta.text.empty() && !delta.audio)) return;
    // The second with which the model began to speak had come then.
    turn_.emplace(turn{{make_span_id(out_.random()), submitted_}});
  }
  auto& said = *turn_;
  if (said.response_id.empty()) said.response_id = delta.response_id;
  if (!said.first_chunk) said.first_chunk = now;
  if (delta.audio && !said.first_sound) said.first_sound = now;
  if (chat) return;
  said.used += delta.chunk_usage.value_or(usage());
  if (delta.measured.wall_clock_ms && std::exchange(said.first_unit, false))
    said.span.since -= std::chrono::duration_cast<time_point::duration>(
        std::chrono::duration<double, std::milli>(delta.measured.queue_ms.value_or(0))); // it had waited for others
  if (delta.end_of_turn) end_turn("stop", now);
}

/// Calls are told when the answer is complete; when each began, its first piece tells.
void session_trace::sent_call(const response_tool_call& event, time_point now) {
  if (!turn_) return;
  auto& told = *turn_;
  const auto number = told.calls++;
  if (number >= most_calls) return;
  const auto began = [&](std::size_t which) {
    return which < told.call_began.size() ? told.call_began[which] : std::optional<time_point>();
  };
  const auto span_of = begun{make_span_id(out_.random()), began(number).value_or(told.span.since)};
  auto span = out_.made("tool_call " + event.call.name, span_of, began(number + 1).value_or(now), &told.span);
  span_writer::add(span, "gen_ai.tool.name", event.call.name);
  span_writer::add(span, "gen_ai.tool.type", "function");
  span_writer::add(span, "gen_ai.tool.call.id", event.call.id);
  out_.send(std::move(span));
}

void session_trace::heard(const conversation::event& event, time_point now) {
  if (const auto* failed = std::get_if<conversation::failed>(&event)) {
    end_opening(word_of(failed->kind), now);
    if (!turn_) return;
    turn_->error = word_of(failed->kind);
    if (!turn_->chat) end_turn("error", now);
    return;
  }
  const auto* delta = std::get_if<conversation::chat_delta>(&event);
  if (delta == nullptr || !turn_) return;
  for (const auto& piece : delta->calls) {
    if (piece.number >= most_calls) continue;
    auto& began = turn_->call_began;
    if (began.size() <= piece.number) began.resize(piece.number + 1);
    if (!began[piece.number]) began[piece.number] = now;
  }
}

void session_trace::end_turn(std::string_view reason, time_point now) {
  if (!turn_) return;
  const auto& over = *turn_;
  const std::string_view operation = over.chat ? "chat" : "realtime_inference";
  auto span = out_.made(std::string(operation) + (model_.empty() ? "" : " " + model_), over.span, now);
  span_writer::add(span, "gen_ai.operation.name", std::string(operation));
  describe(span);
  if (!over.chat) span_writer::add(span, "gen_ai.realtime_session.id", id_);
  span_writer::add(span, "gen_ai.output.type", over.first_sound ? "speech" : "text");
  if (!over.response_id.empty()) span_writer::add(span, "gen_ai.response.id", over.response_id);
  span_writer::add(span, "gen_ai.response.finish_reasons", std::string(reason), true);
  span_writer::add(span, over.used);
  if (over.first_chunk)
    span_writer::add(span, "gen_ai.response.time_to_first_chunk", seconds_between(over.span.since, *over.first_chunk));
  if (over.first_sound) {
    span_writer::add(span, "parley.time_to_first_sound", seconds_between(over.span.since, *over.first_sound));
    span.moments.push_back({"first_sound", out_.ns_at(*over.first_sound)});
  }
  out_.send(std::move(span), over.error);
  turn_.reset();
}

void session_trace::describe(span& what) const {
  span_writer::add(what, "gen_ai.provider.name", "parley");
  if (!model_.empty()) span_writer::add(what, "gen_ai.request.model", model_);
  if (!id_.empty()) span_writer::add(what, "gen_ai.conversation.id", id_);
}

void session_trace::end(const std::string& session_id, mode kind, const usage& used, std::vector<attribute> facts,
                        std::string_view error, time_point now) {
  if (std::exchange(ended_, true)) return;
  if (id_.empty()) id_ = session_id;
  if (error.empty()) error = refusal_;
  if (turn_) end_turn(error.empty() ? "interrupted" : "error", now);
  end_opening(error.empty() ? "session_closed" : error, now);
  end_queue(error.empty() ? "session_closed" : error, now);
  end_failover(error.empty() ? "session_closed" : error, now);
  auto span = out_.whole("session " + std::string(name_of(kind)), began_, now);
  describe(span);
  span_writer::add(span, used);
  for (auto& each : facts) span.attributes.push_back(std::move(each));
  out_.send(std::move(span), error);
}

} // namespace parley::protocol::trace
