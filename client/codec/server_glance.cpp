#include "client/codec/server_glance.hpp"

#include "protocol/json/document.hpp"
#include "protocol/media/base64.hpp"

#include <array>
#include <charconv>
#include <span>
#include <utility>

namespace parley::client {

namespace base64 = protocol::base64;
namespace json = protocol::json;

namespace {

/// A string without escapes, like all base64, is not copied.
std::string_view plain(json::value string, std::string& scratch) {
  if (!string.escaped()) return string.raw();
  scratch = json::unescape(string);
  return scratch;
}

std::size_t samples_in(json::value audio) {
  if (!audio.is(json::kind::string)) return 0;
  std::string scratch;
  return base64::decoded_size(plain(audio, scratch)).value_or(0) / sizeof(float);
}

/// The number in `input_<n>`.
std::int64_t ordinal(json::value id) {
  constexpr std::string_view prefix = "input_";
  std::int64_t number = 0;
  if (id.is(json::kind::string) && id.raw().starts_with(prefix))
    std::from_chars(id.raw().data() + prefix.size(), id.raw().data() + id.raw().size(), number);
  return number;
}

std::string text_of(json::value string) {
  return string.is(json::kind::string) ? json::unescape(string) : std::string();
}

/// A number that T cannot hold, like 1e30 for a count, leaves `into` unchanged.
template<class T>
void read_integer(json::value number, T& into) {
  if (const auto read = json::to_integer(number); read && std::in_range<T>(*read)) into = static_cast<T>(*read);
}

void read_integer(json::value number, std::optional<int>& into) {
  if (const auto read = json::to_integer(number); read && std::in_range<int>(*read)) into = static_cast<int>(*read);
}

conversation::usage usage_of(json::value from) {
  conversation::usage used;
  const auto input = json::member(from, "input_token_details"), output = json::member(from, "output_token_details");
  read_integer(json::member(input, "text_tokens"), used.input_text);
  read_integer(json::member(input, "audio_tokens"), used.input_audio);
  read_integer(json::member(input, "vision_tokens"), used.input_vision);
  read_integer(json::member(output, "text_tokens"), used.output_text);
  read_integer(json::member(output, "audio_tokens"), used.output_audio);
  return used;
}

/// Empty if the value is not sound.
std::vector<float> sound_of(json::value audio) {
  if (!audio.is(json::kind::string)) return {};
  std::string scratch;
  const auto text = plain(audio, scratch);
  const auto bytes = base64::decoded_size(text);
  if (!bytes || *bytes % sizeof(float) != 0) return {};
  std::vector<float> samples(*bytes / sizeof(float));
  if (!base64::decode_to(text, std::as_writable_bytes(std::span(samples)).data())) samples.clear();
  return samples;
}

/// What only events at the beginning, at a return and at the end of a connection say.
void read_resumption(json::value event, server_glance& into) {
  using type = server_event_type;
  if (into.type == type::created || into.type == type::resumed) {
    into.session_id = text_of(json::member(event, "session_id"));
    into.resume_token = text_of(json::member(event, "resume_token"));
    into.resume_seconds = json::to_double(json::member(event, "resume_seconds")).value_or(0);
    read_integer(json::member(event, "inputs"), into.inputs);
    read_integer(json::member(event, "resent"), into.resent);
  }
  if (into.type == type::go_away) read_integer(json::member(event, "retry_after_ms"), into.retry_after_ms);
}

std::optional<server_glance> glance(json::value event) {
  const auto name = json::member(event, "type");
  if (!name.is(json::kind::string)) return std::nullopt;
  server_glance got;
  got.type = server_event_type_of(name.raw());
  if (got.type == server_event_type::spoken) {
    const auto kind = json::member(event, "kind");
    if (kind.is(json::kind::string) && kind.raw() == "listen") got.type = server_event_type::listen;
  }
  const auto text = json::member(event, "text");
  got.text = text.is(json::kind::string) && !text.raw().empty();
  got.audio_samples = samples_in(json::member(event, "audio"));
  const auto ends = json::member(event, "end_of_turn");
  got.end_of_turn = ends.is(json::kind::boolean) && ends.raw() == "true";
  got.input = ordinal(json::member(event, "input_id"));
  got.reason = text_of(json::member(event, "reason"));
  got.error_code = text_of(json::member(json::member(event, "error"), "code"));
  // In the legacy dialect every event ends a step; the current dialect marks the last one.
  const bool legacy = name.raw() == "response.listen" || name.raw() == "response.output_audio.delta";
  const bool output = got.type == server_event_type::listen || got.type == server_event_type::spoken;
  const auto metrics = json::member(event, "metrics");
  got.answers_unit = legacy || (output && json::member(metrics, "wall_clock_ms").given());
  got.dropped_units = json::to_integer(json::member(metrics, "dropped_chunks")).value_or(0);
  read_integer(json::member(event, "event_id"), got.event_id);
  read_resumption(event, got);
  return got;
}

} // namespace

server_event_type server_event_type_of(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, server_event_type>, 14> known{{
      {"session.queued", server_event_type::queued},
      {"session.queue_update", server_event_type::queue_update},
      {"session.queue_done", server_event_type::queue_done},
      {"session.created", server_event_type::created},
      {"session.resumed", server_event_type::resumed},
      {"response.output.delta", server_event_type::spoken},
      {"response.output_audio.delta", server_event_type::spoken},
      {"response.listen", server_event_type::listen},
      {"response.tool_call", server_event_type::tool_call},
      {"response.tool_call.delta", server_event_type::tool_call_delta},
      {"response.done", server_event_type::response_done},
      {"session.go_away", server_event_type::go_away},
      {"session.closed", server_event_type::closed},
      {"error", server_event_type::error},
  }};
  for (const auto& [text, type] : known) {
    if (text == name) return type;
  }
  return server_event_type::other;
}

std::optional<server_glance> glance(std::string_view frame) {
  const auto document = json::scan(frame);
  return glance(json::root(document));
}

std::optional<server_message> read_server_message(std::string_view frame) {
  const auto document = json::scan(frame);
  const auto event = json::root(document);
  auto seen = glance(event);
  if (!seen) return std::nullopt;
  const auto at = [&](std::string_view name) { return json::member(event, name); };
  const auto metrics = at("metrics"), error = at("error");
  server_message got;
  got.type = seen->type;
  got.type_name = text_of(at("type"));
  got.session_id = text_of(at("session_id"));
  got.response_id = text_of(at("response_id"));
  got.text = text_of(at("text"));
  got.audio = sound_of(at("audio"));
  got.answers_unit = seen->answers_unit;
  got.end_of_turn = seen->end_of_turn;
  got.input = seen->input;
  read_integer(at("kv_cache_length"), got.kv_cache_length);
  read_integer(json::member(metrics, "kv_cache_length"), got.kv_cache_length);
  read_integer(at("prompt_length"), got.prompt_length);
  got.dropped_units = seen->dropped_units;
  read_integer(at("position"), got.position);
  read_integer(at("queue_length"), got.queue_length);
  got.estimated_wait_s = json::to_double(at("estimated_wait_s")).value_or(0);
  read_integer(at("time_left_ms"), got.time_left_ms);
  got.reason = std::move(seen->reason);
  got.error_code = std::move(seen->error_code);
  got.error_message = text_of(json::member(error, "message"));
  if (got.type == server_event_type::tool_call || got.type == server_event_type::tool_call_delta)
    got.call = {text_of(at("id")), text_of(at("name")), text_of(at("arguments"))};
  got.used = usage_of(at(got.type == server_event_type::response_done ? "usage" : "chunk_usage"));
  return got;
}

} // namespace parley::client
