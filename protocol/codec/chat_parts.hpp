#pragma once

#include "protocol/chat_budget.hpp"
#include "protocol/events.hpp"
#include "protocol/json/field_reader.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What the requests of a chat consist of (docs/protocol.md 3.5), however the JSON around it is spelled. Each part is charged to
// the budget of its append before it is decoded, and judged where it is read.
namespace parley::protocol {

/// Records that `from` exceeds the append's budget.
void refuse(field_reader& in, const field& from, const std::optional<std::string>& why);

/// Records that a chat has no messages, or too many.
bool refuses_messages(field_reader& in, std::string_view path, std::size_t count);

/// Likewise a schema of that many bytes.
bool refuses_schema(field_reader& in, std::string_view path, std::size_t bytes);

text_item read_text(field_reader& in, const field& text, chat_budget& budget);
audio_item read_audio(field_reader& in, const field& data, chat_budget& budget);
image_file read_picture(field_reader& in, const field& data, chat_budget& budget);

/// `text`: the string in `data`. The budget is checked by length or header before decoding, or during decoding if the header
/// cannot be read from the base64.
pcm read_sound(field_reader& in, const field& data, std::string_view text, chat_budget& budget);

/// `tool_calls` of an assistant's message, which may be absent.
std::vector<conversation::tool_call> read_calls(field_reader& in, const field& calls, chat_budget& budget);

/// As in the OpenAI API: a string, or up to four; may be absent.
void read_stop(field_reader& in, const field& from, chat_append_event& out);

// The same of an answer's ends that never were text.
void check_count_of_stops(field_reader& in, std::string_view path, std::size_t count);
bool check_stop(field_reader& in, std::string_view path, std::size_t bytes);

/// As in the OpenAI API: `text`, `json_object`, or `json_schema` with the schema in it. `from`: an object, or absent.
void read_format(field_reader& in, const field& from, chat_append_event& out);

} // namespace parley::protocol
