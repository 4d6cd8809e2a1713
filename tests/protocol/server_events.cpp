#include "tests/protocol/server_events.hpp"

#include "protocol/media/base64.hpp"
#include "protocol/media/pcm.hpp"

#include <nlohmann/json.hpp>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace parley::tests {
namespace {

using nlohmann::json;

json member(const json& of, const char* name) {
  const auto found = of.is_object() ? of.find(name) : of.end();
  return found == of.end() ? json() : *found;
}

std::string text(const json& of, const char* name) {
  const auto value = member(of, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

void read(const json& of, const char* name, auto& into) {
  if (const auto value = member(of, name); value.is_number_integer()) into = value.get<int>();
}

protocol::pcm sound(const json& of) {
  const auto bytes = protocol::base64::decode(text(of, "audio"));
  if (!bytes || bytes->empty() || bytes->size() % sizeof(float) != 0) return nullptr;
  std::vector<float> samples(bytes->size() / sizeof(float));
  std::memcpy(samples.data(), bytes->data(), bytes->size());
  return protocol::clamped(std::move(samples));
}

protocol::usage used(const json& of) {
  protocol::usage out;
  const auto input = member(of, "input_token_details"), output = member(of, "output_token_details");
  read(input, "text_tokens", out.input_text);
  read(input, "audio_tokens", out.input_audio);
  read(input, "vision_tokens", out.input_vision);
  read(output, "text_tokens", out.output_text);
  read(output, "audio_tokens", out.output_audio);
  return out;
}

protocol::server_event delta(const json& event) {
  protocol::output_delta out;
  out.text = text(event, "text");
  out.audio = sound(event);
  out.kind = text(event, "kind") == "listen" ? protocol::output_kind::listen
             : out.audio                     ? protocol::output_kind::audio
                                             : protocol::output_kind::text;
  out.response_id = text(event, "response_id");
  out.end_of_turn = member(event, "end_of_turn") == true;
  const auto metrics = member(event, "metrics");
  if (!member(metrics, "wall_clock_ms").is_null()) out.measured.wall_clock_ms = 1;
  read(metrics, "kv_cache_length", out.measured.kv_cache_length);
  out.chunk_usage = used(member(event, "chunk_usage"));
  return out;
}

protocol::server_event error(const json& of) {
  protocol::error_event out{protocol::error_code::inference_error, text(of, "message")};
  for (std::size_t i = 0; i < protocol::error_table.size(); ++i)
    if (protocol::error_table[i].wire == text(of, "code")) out.code = static_cast<protocol::error_code>(i);
  return out;
}

} // namespace

std::optional<protocol::server_event> event_in(std::string_view frame) {
  const auto event = json::parse(frame, nullptr, false);
  const auto type = text(event, "type"), response = text(event, "response_id");
  const auto call = [&]() -> conversation::tool_call {
    return {text(event, "id"), text(event, "name"), text(event, "arguments")};
  };
  if (type == "session.created") {
    protocol::session_created out;
    read(member(event, "metrics"), "kv_cache_length", out.measured.kv_cache_length);
    return out;
  }
  if (type == "response.output.delta") return delta(event);
  if (type == "response.tool_call") return protocol::response_tool_call{response, {}, call()};
  if (type == "response.tool_call.delta") return protocol::response_tool_call_delta{response, {}, call()};
  if (type == "response.tool_call.done") return protocol::duplex_call_done{call(), 0, {}};
  if (type == "response.tool_call.abort") return protocol::duplex_call_abort{text(event, "id"), "timeout"};
  if (type == "response.done") {
    protocol::response_done out;
    out.response_id = response;
    out.text = text(event, "text");
    out.audio = sound(event);
    out.reason = text(event, "reason");
    out.used = used(member(event, "usage"));
    return out;
  }
  if (type == "session.closed") return protocol::session_closed{text(event, "reason"), std::nullopt};
  if (type == "error") return error(member(event, "error"));
  return std::nullopt;
}

} // namespace parley::tests
