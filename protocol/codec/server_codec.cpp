#include "protocol/codec/server_codec.hpp"

#include "protocol/json/writer.hpp"
#include "protocol/media/base64.hpp"

#include <algorithm>

namespace parley::protocol {
namespace {

constexpr int ms_decimals = 3;
constexpr int second_decimals = 3;
constexpr int time_decimals = 6;
constexpr int logprob_decimals = 6;
constexpr double least_logprob = -9999;      ///< of what is impossible
constexpr std::size_t envelope_bytes = 1024; ///< enough for an event's ids, metrics and usages

std::span<const float> samples_of(const pcm& audio) {
  return audio ? std::span(*audio) : std::span<const float>();
}

std::size_t audio_bytes(const pcm& audio) {
  return base64::encoded_size(samples_of(audio).size_bytes());
}

void write_usage(json::object_writer& into, std::string_view key, const usage& used) {
  auto input = used.input_text + used.input_audio + used.input_vision;
  auto output = used.output_text + used.output_audio;
  auto all = into.object(key);
  all.integer("total_tokens", input + output);
  all.integer("input_tokens", input);
  all.integer("output_tokens", output);
  auto inputs = all.object("input_token_details");
  inputs.integer("text_tokens", used.input_text);
  inputs.integer("audio_tokens", used.input_audio);
  inputs.integer("vision_tokens", used.input_vision);
  inputs.close();
  auto outputs = all.object("output_token_details");
  outputs.integer("text_tokens", used.output_text);
  outputs.integer("audio_tokens", used.output_audio);
  outputs.close();
  all.close();
}

void write_usage(json::object_writer& into, std::string_view key, const std::optional<usage>& used) {
  if (used) write_usage(into, key, *used);
}

void write_metrics(json::object_writer& into, const metrics& measured) {
  auto out = into.object("metrics");
  auto count = [&](std::string_view key, auto value) {
    if (value) out.integer(key, *value);
  };
  auto time = [&](std::string_view key, std::optional<double> value) {
    if (value) out.number(key, *value, ms_decimals);
  };
  if (!measured.backend.empty()) out.text("backend", measured.backend);
  count("kv_cache_length", measured.kv_cache_length);
  time("prefill_ms", measured.prefill_ms);
  time("generate_ms", measured.generate_ms);
  time("wall_clock_ms", measured.wall_clock_ms);
  time("cost_llm_ms", measured.cost_llm_ms);
  time("cost_tts_prep_ms", measured.cost_tts_prep_ms);
  time("cost_tts_ms", measured.cost_tts_ms);
  time("cost_token2wav_ms", measured.cost_token2wav_ms);
  time("queue_ms", measured.queue_ms);
  count("n_tokens", measured.n_tokens);
  count("n_tts_tokens", measured.n_tts_tokens);
  count("vision_slices", measured.vision_slices);
  count("vision_tokens", measured.vision_tokens);
  count("dropped_chunks", measured.dropped_chunks);
  count("backlog_samples", measured.backlog_samples);
  count("window_events", measured.window_events);
  out.close();
}

void write_chance(json::object_writer& into, const conversation::token_chance& of) {
  into.text("token", of.bytes);
  into.number("logprob", std::max(of.logprob, least_logprob), logprob_decimals);
  std::string bytes = "[";
  for (const char byte : of.bytes) {
    if (bytes.size() > 1) bytes += ',';
    bytes += std::to_string(static_cast<unsigned char>(byte));
  }
  into.json("bytes", bytes + "]");
}

void write_scores(json::object_writer& into, const std::vector<token_score>& scores) {
  if (!scores.empty()) into.json("logprobs", encode_scores(scores));
}

/// Writes one event into one string. Each overload implements its event's row in the table of docs/protocol.md 4.
class encoder {
public:
  encoder(const encode_context& context, std::string& out) : context_(context), out_(out) {}

  void operator()(const session_queued& event) { queue_event("session.queued", event.place); }
  void operator()(const session_queue_update& event) { queue_event("session.queue_update", event.place); }
  void operator()(const session_queue_done&) { out_.text("type", "session.queue_done"); }

  void operator()(const session_created& event) {
    out_.text("type", "session.created");
    out_.text("session_id", context_.session_id);
    if (event.prompt_length) out_.integer("prompt_length", *event.prompt_length);
    if (current()) out_.text("mode", event.turn_based ? "turn_based" : "full_duplex");
    if (full()) {
      write_metrics(out_, event.measured);
      write_usage(out_, "usage", event.total);
    }
    if (current() && event.recording_id) out_.text("recording_id", *event.recording_id);
    if (event.resume_token) {
      out_.text("resume_token", *event.resume_token);
      out_.number("resume_seconds", event.resume_seconds, ms_decimals);
    }
    if (current()) wishes(event);
  }

  void operator()(const session_resumed& event) {
    out_.text("type", "session.resumed");
    session();
    if (!event.resume_token.empty()) out_.text("resume_token", event.resume_token);
    out_.integer("inputs", static_cast<std::int64_t>(event.inputs));
    out_.integer("resent", static_cast<std::int64_t>(event.resent));
  }

  void operator()(const output_delta& event) { current() ? current_delta(event) : legacy_delta(event); }

  void operator()(const response_tool_call& event) {
    out_.text("type", "response.tool_call");
    session();
    out_.text("response_id", event.response_id);
    if (!event.input_id.empty()) out_.text("input_id", event.input_id);
    out_.text("id", event.call.id);
    out_.text("name", event.call.name);
    out_.text("arguments", event.call.arguments);
  }

  void operator()(const response_tool_call_delta& event) {
    out_.text("type", "response.tool_call.delta");
    session();
    out_.text("response_id", event.response_id);
    if (!event.input_id.empty()) out_.text("input_id", event.input_id);
    out_.text("id", event.part.id);
    if (!event.part.name.empty()) out_.text("name", event.part.name);
    out_.text("arguments", event.part.arguments);
  }

  void operator()(const duplex_call_begin& event) {
    duplex_call("response.tool_call.begin", event.call_id);
    out_.integer("unit_index", static_cast<std::int64_t>(event.unit));
    out_.integer("start_ms", event.start_ms);
    out_.integer("end_ms", event.end_ms);
  }

  void operator()(const duplex_call_delta& event) {
    duplex_call("response.tool_call.delta", event.call_id);
    out_.integer("unit_index", static_cast<std::int64_t>(event.unit));
    std::string step;
    json::object_writer one(step);
    one.text("kind", "text");
    one.text("text", event.text);
    one.close();
    out_.json("steps", "[" + step + "]");
  }

  void operator()(const duplex_call_done& event) {
    duplex_call("response.tool_call.done", event.call.id);
    out_.integer("unit_index", static_cast<std::int64_t>(event.unit));
    out_.text("full_text", event.text);
    auto call = out_.object("call");
    call.text("name", event.call.name);
    call.json("arguments", event.call.arguments.empty() ? "{}" : event.call.arguments); // decoded within a schema: JSON
    call.close();
  }

  void operator()(const duplex_call_abort& event) {
    duplex_call("response.tool_call.abort", event.call_id);
    out_.text("reason", event.reason);
  }

  void operator()(const response_done& event) {
    out_.text("type", "response.done");
    session();
    out_.text("response_id", event.response_id);
    if (!event.turn_id.empty()) out_.text("turn_id", event.turn_id);
    if (!event.input_id.empty()) out_.text("input_id", event.input_id);
    out_.text("text", event.text);
    if (event.audio) out_.samples("audio", samples_of(event.audio));
    out_.text("reason", event.reason);
    write_scores(out_, event.scores);
    write_metrics(out_, event.measured);
    write_usage(out_, "usage", event.used);
  }

  void operator()(const session_go_away& event) {
    out_.text("type", "session.go_away");
    out_.text("reason", event.reason);
    out_.integer("time_left_ms", event.time_left_ms);
    if (event.retry_after_ms && current()) out_.integer("retry_after_ms", *event.retry_after_ms);
    session();
  }

  void operator()(const session_closed& event) {
    out_.text("type", "session.closed");
    out_.text("reason", event.reason);
    session();
    if (full()) write_usage(out_, "usage", event.total);
  }

  void operator()(const input_transcript& event) {
    out_.text("type", "input.transcript");
    out_.text("text", event.text);
    out_.integer("start_ms", event.start_ms);
    out_.integer("end_ms", event.end_ms);
    if (!event.problem.empty()) out_.text("problem", event.problem);
    session();
  }

  void operator()(const error_event& event) {
    auto& known = traits(event.code);
    out_.text("type", "error");
    auto inner = out_.object("error");
    inner.text("code", known.wire);
    inner.text("message", event.message);
    inner.text("type", known.client_fault ? "client_error" : "server_error");
    inner.close();
  }

  void finish() {
    if (context_.event_id > 0) out_.integer("event_id", static_cast<std::int64_t>(context_.event_id));
    out_.close();
  }

private:
  bool current() const { return context_.spoken == dialect::current; }

  /// Whether to write fields that the legacy dialect itself lacks.
  bool full() const { return current() || (context_.spoken == dialect::legacy && context_.legacy_extras); }

  void session() {
    if (current() && !context_.session_id.empty()) out_.text("session_id", context_.session_id);
  }

  void duplex_call(std::string_view type, std::string_view call_id) {
    out_.text("type", type);
    session();
    out_.text("tool_call_id", call_id);
  }

  void wishes(const session_created& event) {
    if (!event.granted.empty()) {
      std::string list = "[";
      for (const auto& each : event.granted) {
        if (list.size() > 1) list += ',';
        json::append_string(each, list);
      }
      out_.json("granted", list + "]");
    }
    if (event.refused.empty()) return;
    std::string list = "[";
    for (const auto& each : event.refused) {
      if (list.size() > 1) list += ',';
      json::object_writer one(list);
      one.text("field", each.field);
      one.text("why", each.why);
      one.close();
    }
    out_.json("refused", list + "]");
  }

  void queue_event(std::string_view type, const queue_position& place) {
    out_.text("type", type);
    out_.integer("position", place.position);
    out_.number("estimated_wait_s", place.estimated_wait_s, second_decimals);
    out_.text("ticket_id", place.ticket_id);
    out_.integer("queue_length", place.queue_length);
  }

  void current_delta(const output_delta& event) {
    out_.text("type", "response.output.delta");
    switch (event.kind) {
    case output_kind::listen: out_.text("kind", "listen"); break;
    case output_kind::text:
      out_.text("kind", "text");
      out_.text("text", event.text);
      break;
    case output_kind::audio:
      out_.text("kind", "audio");
      out_.samples("audio", samples_of(event.audio));
      break;
    }
    session();
    if (!event.response_id.empty()) out_.text("response_id", event.response_id);
    if (!event.turn_id.empty()) out_.text("turn_id", event.turn_id);
    if (!event.input_id.empty()) out_.text("input_id", event.input_id);
    if (event.end_of_turn) out_.boolean("end_of_turn", true);
    if (event.chunk_index) out_.integer("chunk_index", *event.chunk_index);
    write_scores(out_, event.scores);
    step_fields(event);
    if (context_.send_time_s > 0) out_.number("server_send_ts", context_.send_time_s, time_decimals);
  }

  void legacy_delta(const output_delta& event) {
    if (event.kind == output_kind::listen) {
      out_.text("type", "response.listen");
    } else {
      out_.text("type", "response.output_audio.delta");
      out_.text("text", event.text);
      out_.samples("audio", samples_of(event.audio));
      out_.boolean("end_of_turn", event.end_of_turn);
    }
    out_.integer("kv_cache_length", event.measured.kv_cache_length.value_or(0));
    if (full()) step_fields(event);
  }

  void step_fields(const output_delta& event) {
    write_metrics(out_, event.measured);
    write_usage(out_, "chunk_usage", event.chunk_usage);
    write_usage(out_, "usage", event.total);
  }

  const encode_context& context_;
  json::object_writer out_;
};

std::size_t scores_bytes(const std::vector<token_score>& scores) {
  constexpr std::size_t of_one = 64;
  std::size_t bytes = 0;
  for (const auto& each : scores) bytes += (1 + each.likeliest.size()) * of_one;
  return bytes;
}

struct size_of_content {
  std::size_t operator()(const auto& event) const requires requires { event.scores; }
  { return event.text.size() + audio_bytes(event.audio) + scores_bytes(event.scores); }
  std::size_t operator()(const response_tool_call& event) const { return event.call.arguments.size(); }
  std::size_t operator()(const duplex_call_delta& event) const { return event.text.size(); }
  std::size_t operator()(const duplex_call_done& event) const { return 2 * event.text.size(); }
  std::size_t operator()(const response_tool_call_delta& event) const { return event.part.arguments.size(); }
  std::size_t operator()(const error_event& event) const { return event.message.size(); }
  std::size_t operator()(const auto&) const { return 0; }
};

} // namespace

std::string encode_scores(const std::vector<token_score>& scores) {
  if (scores.empty()) return {};
  std::string all = "[";
  for (const auto& each : scores) {
    if (all.size() > 1) all += ',';
    std::string others = "[";
    for (const auto& other : each.likeliest) {
      if (others.size() > 1) others += ',';
      json::object_writer one(others);
      write_chance(one, other);
      one.close();
    }
    json::object_writer one(all);
    write_chance(one, each.chosen);
    one.json("top_logprobs", others + "]");
    one.close();
  }
  return all + "]";
}

std::size_t about_bytes(const server_event& event) {
  return envelope_bytes + std::visit(size_of_content(), event);
}

std::string encode(const server_event& event, const encode_context& context) {
  std::string out;
  out.reserve(about_bytes(event));
  encoder write(context, out);
  std::visit(write, event);
  write.finish();
  return out;
}

} // namespace parley::protocol
