#include "protocol/openai/live/session_config.hpp"

#include "protocol/json/writer.hpp"
#include "protocol/openai/realtime/session_config.hpp"
#include "protocol/openai/shared/audio_format.hpp"
#include "protocol/openai/shared/field_set.hpp"

#include <optional>
#include <utility>

namespace parley::protocol::openai::live {
namespace {

constexpr std::size_t max_voice_bytes = 1u << 10;
constexpr std::size_t max_delegation_bytes = 64u << 10;
constexpr std::size_t max_input_items = 128;

void read_format(field_set& audio, speech::sound_format& into) {
  if (!audio.at("format").given()) return;
  auto format = audio.object("format");
  const auto type = format.required_text("type");
  const auto rate = format.required_integer("rate", 1, 1'000'000);
  if (format.failed()) return;
  if (const auto found = audio_format_of(type, rate))
    into = *found;
  else
    audio.refuse_value("format",
                       "this server takes audio/pcm at 24000 or 16000 Hz, audio/pcmu and audio/pcma at 8000.");
}

/// A name, or an object with an id.
void read_voice(field_set& audio, session_config& to) {
  constexpr std::string_view members[] = {"voice"};
  auto output = audio.object("output");
  output.only(members);
  const auto voice = output.at("voice");
  if (!voice.given()) return;
  if (!voice.is(json::kind::object)) {
    output.text("voice"); // says what is wrong
    if (output.failed()) return;
  }
  if (voice.raw().size() > max_voice_bytes) return output.refuse_value("voice", "it is too long.");
  const auto name = voice.is(json::kind::object) ? json::member(voice, "id") : voice;
  if (name.is(json::kind::string)) to.voice_name = json::unescape(name);
  to.voice = voice.is(json::kind::object) ? std::string(voice.raw()) : '"' + std::string(voice.raw()) + '"';
}

void read_delegation(field_set& from, event_sound& event, session_config& into) {
  auto delegation = from.object("delegation");
  if (!delegation.given()) return;
  const auto type = delegation.required_text("type");
  if (delegation.failed()) return;
  if (type == "decisions")
    return delegation.fail({"delegation_unavailable",
                            "This server makes no decisions: delegate to client or responses.",
                            delegation.path_of("type")});
  if (type != "client" && type != "responses")
    return delegation.refuse_value("type", "it must be client or responses.");
  const auto raw = from.at("delegation").raw();
  if (raw.size() > max_delegation_bytes) return from.refuse_value("delegation", "it is longer than 64 KiB.");
  auto responses = delegation.object("responses");
  if (raw != into.delegation) realtime::check_functions(responses, event);
  if (from.failed()) return;
  if (const auto choice = responses.at("tool_choice"); choice.given())
    into.may_call = !(choice.is(json::kind::string) && json::means(choice, "none"));
  const auto tools = responses.at("tools");
  const bool goes_on = into.names_delegation && into.delegates_to_client == (type == "client");
  if (goes_on && !tools.given()) return; // what an update does not name stays
  into.delegation = raw;
  into.delegates_to_client = type == "client";
  into.names_delegation = true;
  into.functions = tools.is(json::kind::array) && !json::elements(tools, 1).empty() ? std::string(tools.raw()) : "[]";
}

void read_input(field_set& from, event_sound& sound, session_config& into) {
  const auto input = from.at("input");
  if (!input.given()) return;
  if (!input.is(json::kind::array)) return from.refuse_value("input", "it must be a list of messages.");
  const auto items = json::elements(input, max_input_items + 1);
  if (items.size() > max_input_items) return from.refuse_value("input", "it has more than 128 messages.");
  std::optional<fault> wrong;
  for (std::size_t at = 0; at < items.size() && !wrong; ++at) {
    field_set one(items[at], from.path_of("input"), wrong);
    auto read = read_item(one, into.format, sound);
    if (wrong) break;
    // Nothing refers to it, and clients may give two the same id.
    read.id = std::to_string(at);
    if (!into.input.insert(std::move(read), std::nullopt))
      one.fail(invalid_value(from.path_of("input"), "it has more than 512 KiB of text.").value());
  }
  if (wrong) from.fail(std::move(*wrong));
}

std::string format_with_rate(const speech::sound_format& of) {
  // Unlike the Realtime API, this one names the rate of every format.
  auto text = encode_format(of);
  if (of.coding != speech::sound_coding::pcm16) {
    text.pop_back();
    text += R"(,"rate":)" + std::to_string(of.rate) + "}";
  }
  return text;
}

} // namespace

result<session_config> read_session(json::value session, event_sound& sound) {
  session_config to;
  std::optional<fault> wrong;
  field_set from(session, "session", wrong);
  constexpr std::string_view members[] = {"model", "instructions", "input", "audio", "delegation", "store", "client",
                                          "triggers", "safety_identifier", "include", "metadata",
                                          // as the server shows it
                                          "type", "object", "id", "status", "expires_at"};
  constexpr std::string_view audio_members[] = {"format", "output"};
  from.only(members);
  from.object("audio").only(audio_members);
  from.require("model");
  to.model = from.short_text("model").value_or("");
  realtime::read_instructions(from, to.instructions);
  auto audio = from.object("audio");
  read_format(audio, to.format);
  read_voice(audio, to);
  read_delegation(from, sound, to);
  read_input(from, sound, to);
  if (wrong) return tl::unexpected(std::move(*wrong));
  return to;
}

result<session_config> updated(session_config before, json::value session, event_sound& event) {
  std::optional<fault> wrong;
  constexpr std::string_view members[] = {"delegation"};
  field_set from(session, "session", wrong);
  from.only(members);
  read_delegation(from, event, before);
  if (wrong) return tl::unexpected(std::move(*wrong));
  return before;
}

std::string encode_session(const session_config& of, std::string_view id, std::int64_t expires_at_s) {
  std::string out;
  json::object_writer write(out);
  write.text("id", id);
  write.integer("expires_at", expires_at_s);
  write.text("model", of.model);
  write.text("status", "active");
  write.text("instructions", of.instructions);
  auto audio = write.object("audio");
  audio.json("format", format_with_rate(of.format));
  auto output = audio.object("output");
  output.json("voice", of.voice);
  output.close();
  audio.close();
  write.json("delegation", of.delegation);
  write.close();
  return out;
}

} // namespace parley::protocol::openai::live
