#include "protocol/codec/chat_parts.hpp"

#include "protocol/codec/schema_check.hpp"
#include "protocol/codec/tool_codec.hpp"
#include "protocol/json/spaced.hpp"
#include "protocol/limits.hpp"
#include "protocol/media/picture.hpp"
#include "protocol/media/voice.hpp"

#include <utility>

namespace parley::protocol {
namespace {

constexpr std::size_t max_stops = 4;
constexpr std::size_t max_stop_bytes = 256;

} // namespace

void refuse(field_reader& in, const field& from, const std::optional<std::string>& why) {
  if (why) in.fail(error_code::invalid_payload, from.path, *why);
}

bool refuses_messages(field_reader& in, std::string_view path, std::size_t count) {
  if (count > 0 && count <= max_chat_messages) return false;
  in.fail(error_code::invalid_payload, path,
          (count == 0 ? std::string("empty") : "more than " + std::to_string(max_chat_messages) + " messages"));
  return true;
}

text_item read_text(field_reader& in, const field& text, chat_budget& budget) {
  if (text.at.is(json::kind::string)) refuse(in, text, budget.add_text(text.at.raw().size()));
  if (in.failed()) return {};
  std::string scratch;
  return {std::string(in.required_text(text, scratch))};
}

pcm read_sound(field_reader& in, const field& data, std::string_view text, chat_budget& budget) {
  const auto claimed = seconds_of_sound(text);
  if (claimed) refuse(in, data, budget.add_seconds(*claimed));
  if (in.failed()) return nullptr;
  auto sound = in.take(decode_sound(text, {0, claimed ? max_chat_seconds : budget.seconds_left()}, data.path));
  if (sound && !claimed) refuse(in, data, budget.add_seconds(static_cast<double>(sound->size()) / unit_samples));
  return sound;
}

audio_item read_audio(field_reader& in, const field& data, chat_budget& budget) {
  std::string scratch;
  auto text = in.required_text(data, scratch);
  if (in.failed()) return {};
  return {read_sound(in, data, text, budget)};
}

image_file read_picture(field_reader& in, const field& data, chat_budget& budget) {
  refuse(in, data, budget.add_pictures(1));
  std::string scratch;
  auto text = in.required_text(data, scratch);
  return in.failed() ? nullptr : in.take(decode_image(text, data.path, picture_kinds::jpeg_png_webp));
}

std::vector<conversation::tool_call> read_calls(field_reader& in, const field& calls, chat_budget& budget) {
  if (calls.at.given()) refuse(in, calls, budget.add_text(calls.at.raw().size()));
  return in.failed() ? std::vector<conversation::tool_call>() : read_tool_calls(in, calls);
}

void check_count_of_stops(field_reader& in, std::string_view path, std::size_t count) {
  if (count > max_stops) in.fail(error_code::invalid_payload, path, "more than four");
}

bool check_stop(field_reader& in, std::string_view path, std::size_t bytes) {
  if (bytes > 0 && bytes <= max_stop_bytes) return true;
  in.fail(error_code::invalid_payload, path, "not 1 to 256 bytes");
  return false;
}

void read_stop(field_reader& in, const field& from, chat_append_event& out) {
  if (!from.at.given()) return;
  const bool several = from.at.is(json::kind::array);
  const auto given = several ? json::elements(from.at, max_stops + 1) : std::vector{from.at};
  check_count_of_stops(in, from.path, given.size());
  for (std::size_t i = 0; i < given.size() && !in.failed(); ++i) {
    const auto each = several ? field_reader::element(from, given[i], i) : from;
    auto text = json::unescape(each.at, max_stop_bytes);
    if (!each.at.is(json::kind::string))
      in.fail(error_code::invalid_payload, each.path, "not a string");
    else if (check_stop(in, each.path, text ? text->size() : max_stop_bytes + 1) && text)
      out.stop.push_back(*std::move(text));
  }
}

bool refuses_schema(field_reader& in, std::string_view path, std::size_t bytes) {
  if (bytes <= max_schema_bytes) return false;
  in.fail(error_code::invalid_payload, path, "more than 64 KiB");
  return true;
}

void read_format(field_reader& in, const field& from, chat_append_event& out) {
  std::string scratch;
  const auto type = field_reader::find(from, {"type"});
  const auto name = in.text(type, scratch).value_or("text");
  if (in.failed() || name == "text") return;
  if (name == "json_object") {
    out.answer_schema = R"({"type": "object"})";
  } else if (name == "json_schema") {
    auto holder = in.object(field_reader::find(from, {"json_schema"}));
    const auto schema = in.required_object(in.require(holder.at.given() ? holder : from, {"schema"}));
    if (in.failed()) return;
    bool strict = false;
    in.boolean(field_reader::find(holder.at.given() ? holder : from, {"strict"}), strict);
    if (refuses_schema(in, schema.path, schema.at.raw().size())) return;
    json::append_spaced(schema.at, out.answer_schema);
    check_schema(in, schema, strict, out.answer_schema);
  } else {
    in.fail(error_code::invalid_payload, type.path, "none of text, json_object, json_schema");
  }
}

} // namespace parley::protocol
