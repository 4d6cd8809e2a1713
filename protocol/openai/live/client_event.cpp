#include "protocol/openai/live/client_event.hpp"

#include "protocol/openai/shared/field_set.hpp"

#include <optional>
#include <utility>

namespace parley::protocol::openai::live {
namespace {

constexpr std::size_t max_content_bytes = 4'000; ///< the API's limit is 500 tokens

client_event read_start(field_set& event, event_sound& sound) {
  session_start out;
  const auto session = event.require("session");
  if (event.failed()) return out;
  if (!session.is(json::kind::object)) {
    event.object("session"); // says what is wrong
    return out;
  }
  if (auto read = read_session(session, sound))
    out.config = std::move(*read);
  else
    event.fail(read.error());
  return out;
}

client_event read_update(field_set& event, event_sound&) {
  event.object("session");
  return session_update{event.require("session")};
}

client_event read_append(field_set& event, event_sound&) {
  event.require("audio");
  return audio_append{event.borrowed("audio", most_append_bytes).value_or(borrowed_text{})};
}

template<context_append::channel Channel>
client_event read_context(field_set& event, event_sound&) {
  auto content = event.required_text("content", max_content_bytes);
  return context_append{Channel, std::move(content), event.text("delegation_id").value_or("")};
}

client_event read_response_item(field_set& event, event_sound& sound) {
  auto one = event.object("item");
  if (!one.given()) event.require("item"); // says what is wrong
  if (event.failed()) return response_item{};
  return response_item{read_item(one, {}, sound)};
}

struct known_event {
  std::string_view type;
  client_event (*read)(field_set&, event_sound&);
};

constexpr known_event known_events[] = {
    {"session.start", read_start},
    {"session.update", read_update},
    {"session.close", [](field_set&, event_sound&) -> client_event { return session_close{}; }},
    {"session.input_audio.append", read_append},
    {"session.input_audio.mute", [](field_set&, event_sound&) -> client_event { return audio_mute{true}; }},
    {"session.input_audio.unmute", [](field_set&, event_sound&) -> client_event { return audio_mute{false}; }},
    {"session.instructions.append", read_context<context_append::channel::instructions>},
    {"session.thinking.append", read_context<context_append::channel::thinking>},
    {"session.commentary.append", read_context<context_append::channel::commentary>},
    {"response.item.create", read_response_item},
    {"response.create", [](field_set&, event_sound&) -> client_event { return response_create{}; }},
};

fault unknown_type(const std::string& type) {
  if (type.starts_with("response.") || type.starts_with("decision."))
    return {"delegation_unavailable", "This server makes no decisions, so '" + type + "' has no effect.", "type"};
  if (type == "session.output_audio.fixture.play") return {"unsupported_event", "This server has no fixtures.", "type"};
  return {"unknown_event", "Unknown event '" + type + "'.", "type"};
}

} // namespace

result<client_event> read_client_event(json::value event, event_sound& sound) {
  std::optional<fault> wrong;
  field_set from(event, "", wrong);
  const auto type = from.required_text("type");
  if (wrong) return tl::unexpected(std::move(*wrong));
  for (const auto& each : known_events) {
    if (each.type != type) continue;
    auto out = each.read(from, sound);
    if (wrong && wrong->param == "audio" && wrong->code == "invalid_value") wrong->code = "invalid_audio";
    if (wrong) return tl::unexpected(std::move(*wrong));
    return out;
  }
  return tl::unexpected(unknown_type(type.substr(0, 64)));
}

} // namespace parley::protocol::openai::live
