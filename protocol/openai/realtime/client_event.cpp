#include "protocol/openai/realtime/client_event.hpp"

#include "protocol/json/document.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/openai/beta/beta_events.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace parley::protocol::openai::realtime {
namespace {

constexpr std::size_t max_metadata_pairs = 16;
constexpr std::size_t max_metadata_key = 64; ///< characters, like the next one
constexpr std::size_t max_metadata_value = 512;
constexpr std::size_t max_input_items = 256;
constexpr std::int64_t longest_ms = std::numeric_limits<std::int32_t>::max();

/// The text if it has at most so many characters.
std::optional<std::string> short_text(json::value string, std::size_t most_characters) {
  auto text = json::unescape(string, 4 * most_characters);
  if (!text) return text;
  const auto characters =
      std::count_if(text->begin(), text->end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  if (static_cast<std::size_t>(characters) > most_characters) text.reset();
  return text;
}

/// Kept as its pairs, whatever stood between them: it is shown again.
void read_metadata(field_set& from, std::string& into) {
  const auto given = from.at("metadata");
  if (!given.given()) return;
  if (!given.is(json::kind::object)) return from.refuse_value("metadata", "it must be an object.");
  const auto pairs = json::members(given, max_metadata_pairs + 1);
  std::string out = "{";
  for (const auto& [key, value] : pairs) {
    const auto name = short_text(key, max_metadata_key);
    if (pairs.size() > max_metadata_pairs || !name)
      return from.refuse_value("metadata", "it may have 16 keys of at most 64 characters.");
    const auto text = value.is(json::kind::string) ? short_text(value, max_metadata_value) : std::nullopt;
    if (!text) return from.refuse_value("metadata", "its values must be strings of at most 512 characters.");
    if (out.size() > 1) out += ',';
    json::append_string(*name, out);
    out += ':';
    json::append_string(*text, out);
  }
  into = out + '}';
}

void read_input(field_set& from, const speech::sound_format& coding, event_sound& sound, response_request& into) {
  const auto given = from.at("input");
  if (!given.given()) return;
  if (!given.is(json::kind::array)) return from.refuse_value("input", "it must be a list of items.");
  const auto items = json::elements(given, max_input_items + 1);
  if (items.size() > max_input_items) return from.refuse_value("input", "it has more than 256 items.");
  auto& input = into.input.emplace();
  std::optional<fault> wrong;
  for (const auto& each : items) {
    field_set one(each, from.path_of("input"), wrong);
    if (one.text("type").value_or("") == "item_reference")
      input.emplace_back(one.required_text("id"));
    else
      input.emplace_back(read_item(one, coding, sound));
    if (wrong) break;
  }
  if (wrong) from.fail(std::move(*wrong));
}

client_event read_response_create(field_set& event, const session_config& current, event_sound& sound) {
  response_create out{default_response(current)};
  constexpr std::string_view members[] = {
      "conversation", "instructions", "output_modalities", "tools", "tool_choice", "max_output_tokens", "metadata",
      "input", "audio", "prompt", "parallel_tool_calls", "reasoning",
      // the beta's
      "modalities", "voice", "output_audio_format", "temperature", "max_response_output_tokens"};
  constexpr std::string_view audio_members[] = {"output", "voice", "format"};
  auto from = event.object("response");
  from.only(members);
  from.object("audio").only(audio_members);
  if (from.at("prompt").given()) from.refuse_value("prompt", "this server keeps no prompts.");
  auto& into = out.request;
  into.in_conversation = from.text("conversation").value_or("auto") != "none";
  into.own_instructions = from.at("instructions").given();
  read_instructions(from, into.instructions);
  read_output_modalities(from, into.audible);
  read_max_output_tokens(from, into.max_output_tokens);
  read_output_audio(from, into.output, into.voice);
  read_metadata(from, into.metadata);
  read_tools(from, into.tools, into.tool_choice, &sound);
  if (from.at("tool_choice").given() && into.tool_choice == R"("required")" && into.tools == "[]")
    from.refuse_value("tool_choice", "there are no tools.");
  read_input(from, current.input, sound, into);
  return out;
}

client_event read_append(field_set& event, const session_config&, event_sound&) {
  event.require("audio");
  return audio_append{event.borrowed("audio", most_append_bytes).value_or(borrowed_text{})};
}

client_event read_item_create(field_set& event, const session_config& current, event_sound& sound) {
  item_create out;
  out.previous = event.text("previous_item_id");
  event.require("item");
  auto from = event.object("item");
  if (from.given()) out.one = read_item(from, current.input, sound);
  return out;
}

client_event read_truncate(field_set& event, const session_config&, event_sound&) {
  item_truncate out;
  out.id = event.required_text("item_id");
  out.content_index = static_cast<int>(event.required_integer("content_index", 0, 1000).value_or(0));
  out.audio_end_ms = event.required_integer("audio_end_ms", 0, longest_ms).value_or(0);
  return out;
}

client_event read_session_update(field_set& event, const session_config&, event_sound&) {
  event.require("session");
  if (!event.object("session").given()) return session_update{};
  return session_update{event.at("session")};
}

using reader = client_event (*)(field_set&, const session_config&, event_sound&);
constexpr std::array<std::pair<std::string_view, reader>, 11> readers{{
    {"session.update", read_session_update},
    {"input_audio_buffer.append", read_append},
    {"input_audio_buffer.commit",
     [](field_set&, const session_config&, event_sound&) -> client_event { return audio_commit{}; }},
    {"input_audio_buffer.clear",
     [](field_set&, const session_config&, event_sound&) -> client_event { return audio_clear{}; }},
    {"conversation.item.create", read_item_create},
    {"conversation.item.delete",
     [](field_set& event, const session_config&, event_sound&) -> client_event {
       return item_delete{event.required_text("item_id")};
     }},
    {"conversation.item.retrieve",
     [](field_set& event, const session_config&, event_sound&) -> client_event {
       return item_retrieve{event.required_text("item_id")};
     }},
    {"conversation.item.truncate", read_truncate},
    {"response.create", read_response_create},
    {"response.cancel",
     [](field_set& event, const session_config&, event_sound&) -> client_event {
       return response_cancel{event.text("response_id").value_or("")};
     }},
    {"output_audio_buffer.clear",
     [](field_set&, const session_config&, event_sound&) -> client_event { return output_clear{}; }},
}};

} // namespace

response_request default_response(const session_config& current) {
  response_request out;
  out.instructions = current.instructions;
  out.audible = current.audible;
  out.max_output_tokens = current.max_output_tokens;
  out.output = current.output;
  out.voice = current.voice;
  out.tools = current.tools;
  out.tool_choice = current.tool_choice;
  return out;
}

result<client_event> read_client_event(json::value event, const session_config& current, event_sound& sound) {
  std::optional<fault> wrong;
  field_set fields(event, "", wrong);
  const auto type = fields.required_text("type");
  if (wrong) return tl::unexpected(std::move(*wrong));
  for (const auto& [name, read] : readers) {
    if (name != type) continue;
    auto out = read(fields, current, sound);
    if (wrong) return tl::unexpected(std::move(*wrong));
    return out;
  }
  return refuse("invalid_value", "Invalid value: '" + type.substr(0, 64) + "'.", "type");
}

bool is_first_update(std::string_view frame) {
  const auto document = json::scan(frame);
  const auto event = json::root(document);
  const auto type = json::member(event, "type"), session = json::member(event, "session");
  if (!type.is(json::kind::string) || type.raw() != "session.update") return false;
  const auto kind = json::member(session, "type");
  if (kind.is(json::kind::string) && kind.raw() == "realtime") return true;
  return json::member(session, "audio").given() || json::member(session, "output_modalities").given() ||
         beta::is_beta_update(frame);
}

} // namespace parley::protocol::openai::realtime
