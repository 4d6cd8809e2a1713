#include "actors/session/convert.hpp"

#include <utility>

namespace parley::actors {

namespace {

/// Copies all measurements; those that this step did not have (speech, pictures, a sliding window) stay absent.
protocol::metrics convert(const inference::step_metrics& from) {
  protocol::metrics to;
  to.backend = "libtorch";
  to.kv_cache_length = from.kv_cache_length;
  to.prefill_ms = from.prefill_ms;
  to.generate_ms = from.generate_ms;
  to.cost_llm_ms = from.llm_ms;
  to.n_tokens = from.n_tokens;
  if (from.n_tts_tokens > 0) {
    to.cost_tts_ms = from.tts_ms;
    to.cost_token2wav_ms = from.token2wav_ms;
    to.n_tts_tokens = from.n_tts_tokens;
  }
  if (from.vision_slices > 0) {
    to.vision_slices = from.vision_slices;
    to.vision_tokens = from.vision_tokens;
  }
  if (from.window_events > 0) to.window_events = from.window_events;
  return to;
}

} // namespace

inference::command to_engine(const protocol::open_engine& order, inference::session_id session) {
  const auto& init = *order.init;
  if (order.kind == protocol::mode::chat) return inference::open_chat{session, init.seed};
  return inference::open_duplex{session, init.system_prompt, init.config, init.voice, init.tts_voice, init.seed};
}

inference::command to_engine(protocol::submit_unit&& order, inference::session_id session) {
  inference::submit_unit unit{
      session, order.unit, std::move(order.samples), std::move(order.frames), order.max_slice_nums, order.force_listen};
  unit.context = std::move(order.context);
  return unit;
}

inference::command to_engine(const protocol::submit_turn& order, inference::session_id session) {
  const conversation::turn_request& request = *order.request;
  return inference::submit_turn{request, session, order.turn};
}

protocol::engine_opened from_engine(const inference::opened& event) {
  return {event.prompt_tokens, event.prompt_usage};
}

protocol::step_report from_engine(inference::step_output&& event) {
  protocol::step_report report;
  report.unit = event.unit;
  report.kind = event.kind;
  report.text = std::move(event.text);
  report.audio = std::move(event.audio);
  report.first = event.first;
  report.last = event.last;
  report.end_of_turn = event.end_of_turn;
  report.used = event.used;
  if (event.last) {
    report.measured = convert(event.metrics);
  } else {
    report.measured.kv_cache_length = event.metrics.kv_cache_length;
  }
  return report;
}

protocol::turn_report from_engine(inference::chat_delta&& event) {
  return {event.turn, std::move(event.text), std::move(event.audio), std::move(event.scores), std::move(event.calls)};
}

protocol::turn_done_report from_engine(inference::chat_done&& event) {
  return {event.turn, event.reason,           std::move(event.text),  std::move(event.audio),
          event.used, convert(event.metrics), std::move(event.calls), std::move(event.scores)};
}

protocol::engine_failure from_engine(inference::failed&& event) {
  return {event.number, event.kind, std::move(event.message)};
}

protocol::effects hear(protocol::session_machine& machine, inference::event&& event, protocol::time_point now) {
  if (auto* opened = std::get_if<inference::opened>(&event)) return machine.on_engine_opened(from_engine(*opened), now);
  if (auto* output = std::get_if<inference::step_output>(&event))
    return machine.on_step_report(from_engine(std::move(*output)), now);
  if (auto* delta = std::get_if<inference::chat_delta>(&event))
    return machine.on_turn_report(from_engine(std::move(*delta)), now);
  if (auto* done = std::get_if<inference::chat_done>(&event))
    return machine.on_turn_done(from_engine(std::move(*done)), now);
  if (auto* failed = std::get_if<inference::failed>(&event))
    return machine.on_engine_failed(from_engine(std::move(*failed)), now);
  if (std::holds_alternative<inference::closed>(event)) return machine.on_engine_closed(now);
  return {}; // `replayed` concerns the journal alone
}

} // namespace parley::actors
