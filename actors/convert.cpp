#include "actors/convert.hpp"

#include <utility>

namespace parley::actors {

namespace {

inference::window_mode convert(protocol::window_mode mode) {
  switch (mode) {
  case protocol::window_mode::off: return inference::window_mode::off;
  case protocol::window_mode::basic: return inference::window_mode::basic;
  case protocol::window_mode::context: return inference::window_mode::context;
  }
  return inference::window_mode::off;
}

inference::role convert(protocol::role from) {
  switch (from) {
  case protocol::role::system: return inference::role::system;
  case protocol::role::user: return inference::role::user;
  case protocol::role::assistant: return inference::role::assistant;
  }
  return inference::role::user;
}

inference::content_item convert(const protocol::content_item& item) {
  struct {
    inference::content_item operator()(const protocol::text_item& of) const { return inference::text_item{of.text}; }
    inference::content_item operator()(const protocol::audio_item& of) const {
      return inference::audio_item{of.samples};
    }
    inference::content_item operator()(const protocol::image_item& of) const { return inference::image_item{of.file}; }
    inference::content_item operator()(const protocol::video_item& of) const {
      return inference::video_item{of.frames, of.samples, of.stack_frames};
    }
  } converter;
  return std::visit(converter, item);
}

inference::message convert(const protocol::message& from) {
  inference::message to{convert(from.from), {}};
  to.content.reserve(from.content.size());
  for (const auto& item : from.content) to.content.push_back(convert(item));
  return to;
}

inference::duplex_options convert(const protocol::duplex_config& from, protocol::window_mode window) {
  inference::duplex_options to;
  to.sampling.greedy = from.greedy;
  to.sampling.temperature = from.temperature;
  to.sampling.top_k = from.top_k;
  to.sampling.top_p = from.top_p;
  to.sampling.repetition_penalty = from.text_repetition_penalty;
  to.sampling.repetition_window = from.text_repetition_window_size;
  to.sampling.length_penalty = from.length_penalty;
  to.force_listen_count = from.force_listen_count;
  to.max_new_speak_tokens_per_chunk = from.max_new_speak_tokens_per_chunk;
  to.listen_prob_scale = from.listen_prob_scale;
  to.listen_top_k = from.listen_top_k;
  to.tts_temperature = from.tts_temperature;
  to.generate_audio = from.generate_audio;
  to.window = convert(window);
  to.window_high_tokens = from.basic_window_high_tokens;
  to.window_low_tokens = from.basic_window_low_tokens;
  return to;
}

protocol::usage convert(const inference::usage& from) {
  return {from.input_text, from.input_audio, from.input_vision, from.output_text, from.output_audio};
}

/// All that was measured; what this step did not have (speech, pictures, a sliding window) stays away.
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
  if (order.kind == protocol::mode::chat) return inference::open_chat{session, init.config.seed};
  return inference::open_duplex{session,    init.system_prompt, convert(init.config, order.window),
                                init.voice, init.tts_voice,     init.config.seed};
}

inference::command to_engine(protocol::submit_unit&& order, inference::session_id session) {
  return inference::submit_unit{
      session, order.unit, std::move(order.samples), std::move(order.frames), order.max_slice_nums, order.force_listen};
}

inference::command to_engine(const protocol::submit_turn& order, inference::session_id session) {
  const auto& from = *order.request;
  inference::submit_turn to;
  to.session = session;
  to.turn = order.turn;
  to.messages.reserve(from.messages.size());
  for (const auto& message : from.messages) to.messages.push_back(convert(message));
  to.max_new_tokens = from.max_new_tokens;
  to.do_sample = from.do_sample;
  to.temperature = from.temperature;
  to.top_k = from.top_k;
  to.top_p = from.top_p;
  to.length_penalty = from.length_penalty;
  to.seed = from.seed;
  to.max_slice_nums = from.max_slice_nums;
  to.omni_mode = from.omni_mode;
  to.use_tts_template = from.use_tts_template;
  to.enable_thinking = from.enable_thinking;
  to.tts = from.tts;
  to.tts_voice = from.tts_voice;
  to.streaming = from.streaming;
  return to;
}

protocol::engine_opened from_engine(const inference::opened& event) {
  return {event.prompt_tokens, convert(event.prompt_usage)};
}

protocol::step_report from_engine(inference::step_output&& event) {
  protocol::step_report report;
  report.unit = event.unit;
  switch (event.kind) {
  case inference::output_kind::listen: report.kind = protocol::output_kind::listen; break;
  case inference::output_kind::text: report.kind = protocol::output_kind::text; break;
  case inference::output_kind::audio: report.kind = protocol::output_kind::audio; break;
  }
  report.text = std::move(event.text);
  report.audio = std::move(event.audio);
  report.first = event.first;
  report.last = event.last;
  report.end_of_turn = event.end_of_turn;
  report.used = convert(event.used);
  if (event.last) {
    report.measured = convert(event.metrics);
  } else {
    report.measured.kv_cache_length = event.metrics.kv_cache_length;
  }
  return report;
}

protocol::turn_report from_engine(inference::chat_delta&& event) {
  return {event.turn, std::move(event.text), std::move(event.audio)};
}

protocol::turn_done_report from_engine(inference::chat_done&& event) {
  protocol::turn_done_report report;
  report.turn = event.turn;
  switch (event.reason) {
  case inference::finish::turn_end: report.reason = protocol::turn_end::finished; break;
  case inference::finish::length: report.reason = protocol::turn_end::length; break;
  case inference::finish::cancelled: report.reason = protocol::turn_end::cancelled; break;
  }
  report.text = std::move(event.text);
  report.audio = std::move(event.audio);
  report.used = convert(event.used);
  report.measured = convert(event.metrics);
  return report;
}

protocol::engine_failure from_engine(inference::failed&& event) {
  protocol::failure_kind kind = protocol::failure_kind::inference;
  if (event.kind == inference::failure::invalid) kind = protocol::failure_kind::invalid;
  if (event.kind == inference::failure::context_full) kind = protocol::failure_kind::context_full;
  return {event.number, kind, std::move(event.message)};
}

} // namespace parley::actors
