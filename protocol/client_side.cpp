#include "protocol/client_side.hpp"

#include "protocol/base64.hpp"
#include "protocol/json_writer.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

namespace parley::protocol {
namespace {

constexpr std::size_t envelope_bytes = 256;

void write_voice(json::object_writer& into, std::string_view key, std::string_view wav) {
  std::string text;
  base64::append(std::as_bytes(std::span(wav)), text);
  into.text(key, text);
}

void write_current_init(json::object_writer& out, const init_request& request) {
  out.text("type", "session.init");
  auto payload = out.object("payload");
  if (request.system_prompt) payload.text("system_prompt", *request.system_prompt);
  auto config = payload.object("config");
  if (request.force_listen_count) config.integer("force_listen_count", *request.force_listen_count);
  if (request.greedy) config.text("decode_mode", "greedy");
  if (request.seed) config.integer("seed", static_cast<std::int64_t>(*request.seed));
  config.close();
  if (!request.voice.empty()) {
    auto voice = payload.object("voice");
    write_voice(voice, "ref_audio_base64", request.voice);
    voice.close();
  }
  payload.close();
}

void write_legacy_init(json::object_writer& out, const init_request& request) {
  out.text("type", "session.update");
  auto session = out.object("session");
  session.text("instructions", request.system_prompt.value_or("You are a helpful assistant."));
  if (!request.voice.empty()) write_voice(session, "ref_audio", request.voice);
  session.close();
}

std::string chat_message(std::string_view role, std::string_view content) {
  std::string text;
  json::object_writer out(text);
  out.text("role", role);
  out.text("content", content);
  out.close();
  return text;
}

std::string media_item(std::string_view type, std::string_view bytes) {
  std::string data, text;
  base64::append(std::as_bytes(std::span(bytes)), data);
  json::object_writer out(text);
  out.text("type", type);
  out.text("data", data);
  out.close();
  return text;
}

std::string message_with_media(const chat_request& request) {
  std::string text = R"({"role":"user","content":[)";
  for (const auto& image : request.images) text += media_item("image", image) + ",";
  for (const auto& sound : request.sounds) text += media_item("audio", sound) + ",";
  json::object_writer out(text);
  out.text("type", "text");
  out.text("text", request.prompt);
  out.close();
  return text + "]}";
}

/// A number that is none of T's, like 1e30 for a count, leaves `into` as it is.
template<class T>
void read_number(const nlohmann::json& number, T& into) {
  if constexpr (std::is_floating_point_v<T>) {
    into = number.get<T>();
  } else {
    constexpr auto limit = static_cast<double>(std::numeric_limits<T>::max());
    if (number.is_number_unsigned()) {
      if (std::in_range<T>(number.get<std::uint64_t>())) into = number.get<T>();
    } else if (number.is_number_integer()) {
      if (std::in_range<T>(number.get<std::int64_t>())) into = number.get<T>();
    } else if (std::abs(number.get<double>()) < limit) {
      into = static_cast<T>(number.get<double>());
    }
  }
}

template<class T>
void read(const nlohmann::json& from, const char* key, T& into) {
  const auto found = from.find(key);
  if (found == from.end()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) into = found->get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (found->is_boolean()) into = found->get<bool>();
  } else {
    if (found->is_number()) read_number(*found, into);
  }
}

void read(const nlohmann::json& from, const char* key, std::optional<int>& into) {
  if (const auto found = from.find(key); found != from.end() && found->is_number()) read_number(*found, into.emplace());
}

std::vector<float> samples_of(const nlohmann::json& from) {
  const auto audio = from.find("audio");
  if (audio == from.end() || !audio->is_string()) return {};
  const auto& text = audio->get_ref<const std::string&>();
  const auto bytes = base64::decoded_size(text);
  if (!bytes || *bytes % sizeof(float) != 0) return {};
  std::vector<float> samples(*bytes / sizeof(float));
  if (!base64::decode_to(text, std::as_writable_bytes(std::span(samples)).data())) samples.clear();
  return samples;
}

/// `input_<n>`.
std::int64_t input_ordinal(const nlohmann::json& event) {
  constexpr std::string_view prefix = "input_";
  std::string id;
  read(event, "input_id", id);
  std::int64_t ordinal = 0;
  if (id.starts_with(prefix)) std::from_chars(id.data() + prefix.size(), id.data() + id.size(), ordinal);
  return ordinal;
}

} // namespace

server_event_type server_event_type_of(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, server_event_type>, 11> known{{
      {"session.queued", server_event_type::queued},
      {"session.queue_update", server_event_type::queue_update},
      {"session.queue_done", server_event_type::queue_done},
      {"session.created", server_event_type::created},
      {"response.output.delta", server_event_type::spoken},
      {"response.output_audio.delta", server_event_type::spoken},
      {"response.listen", server_event_type::listen},
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

std::string encode_init(const init_request& request) {
  std::string text;
  text.reserve(envelope_bytes + base64::encoded_size(request.voice.size()));
  json::object_writer out(text);
  if (request.spoken == dialect::legacy) {
    write_legacy_init(out, request);
  } else {
    write_current_init(out, request);
  }
  out.close();
  return text;
}

std::string encode_append(dialect spoken, std::span<const float> samples, bool force_listen, std::string_view picture) {
  std::string text;
  text.reserve(envelope_bytes + base64::encoded_size(samples.size_bytes()) + base64::encoded_size(picture.size()));
  json::object_writer out(text);
  const auto write_input = [&](json::object_writer& into) {
    into.samples("audio", samples);
    if (!picture.empty()) {
      text += R"(,"video_frames":[")";
      base64::append(std::as_bytes(std::span(picture)), text);
      text += R"("])";
    }
    if (force_listen) into.boolean("force_listen", true);
  };
  if (spoken == dialect::legacy) {
    out.text("type", "input_audio_buffer.append");
    write_input(out);
  } else {
    out.text("type", "input.append");
    auto input = out.object("input");
    write_input(input);
    input.close();
  }
  out.close();
  return text;
}

std::string encode_chat(const chat_request& request) {
  std::string text = R"({"type":"input.append","input":{"messages":[)";
  if (request.system) text += chat_message("system", *request.system) + ",";
  if (request.images.empty() && request.sounds.empty())
    text += chat_message("user", request.prompt);
  else
    text += message_with_media(request);
  text += R"(],"streaming":)" + std::string(request.streaming ? "true" : "false");
  text += R"(,"generation":)";
  json::object_writer generation(text);
  if (request.max_new_tokens) generation.integer("max_new_tokens", *request.max_new_tokens);
  if (request.greedy) generation.boolean("do_sample", false);
  if (request.seed) generation.integer("seed", static_cast<std::int64_t>(*request.seed));
  generation.close();
  if (request.tts) text += R"(,"tts":{"enabled":true})";
  return text + "}}";
}

std::string encode_close(std::string_view reason) {
  std::string text;
  json::object_writer out(text);
  out.text("type", "session.close");
  out.text("reason", reason);
  out.close();
  return text;
}

std::optional<server_message> read_server_message(std::string_view frame) {
  const auto event = nlohmann::json::parse(frame, nullptr, false);
  if (!event.is_object() || !event.contains("type")) return std::nullopt;
  server_message got;
  read(event, "type", got.type_name);
  got.type = server_event_type_of(got.type_name);
  std::string kind;
  read(event, "kind", kind);
  if (got.type == server_event_type::spoken && kind == "listen") got.type = server_event_type::listen;

  read(event, "session_id", got.session_id);
  read(event, "text", got.text);
  got.audio = samples_of(event);
  read(event, "end_of_turn", got.end_of_turn);
  got.input = input_ordinal(event);
  read(event, "kv_cache_length", got.kv_cache_length);
  read(event, "prompt_length", got.prompt_length);
  read(event, "position", got.position);
  read(event, "queue_length", got.queue_length);
  read(event, "estimated_wait_s", got.estimated_wait_s);
  read(event, "time_left_ms", got.time_left_ms);
  read(event, "reason", got.reason);
  // The legacy dialect has one event a step, the current one marks the last.
  const bool legacy = got.type_name == "response.listen" || got.type_name == "response.output_audio.delta";
  got.answers_unit = legacy;
  if (const auto metrics = event.find("metrics"); metrics != event.end() && metrics->is_object()) {
    read(*metrics, "kv_cache_length", got.kv_cache_length);
    read(*metrics, "dropped_chunks", got.dropped_units);
    const bool output = got.type == server_event_type::listen || got.type == server_event_type::spoken;
    got.answers_unit = legacy || (output && metrics->contains("wall_clock_ms"));
  }
  if (const auto error = event.find("error"); error != event.end() && error->is_object()) {
    read(*error, "code", got.error_code);
    read(*error, "message", got.error_message);
  }
  return got;
}

} // namespace parley::protocol
