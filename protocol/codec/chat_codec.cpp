#include "protocol/chat_budget.hpp"
#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/message_codec.hpp"
#include "protocol/codec/schema_check.hpp"
#include "protocol/codec/tool_codec.hpp"
#include "protocol/codec/tool_results.hpp"
#include "protocol/json/field_reader.hpp"
#include "protocol/json/spaced.hpp"
#include "protocol/limits.hpp"
#include "protocol/media/picture.hpp"
#include "protocol/media/voice.hpp"

#include <algorithm>

namespace parley::protocol {
namespace {

constexpr std::size_t max_messages = 256;
constexpr int max_answer_tokens = 4096;
constexpr int max_top_logprobs = 20;
constexpr std::size_t max_stops = 4;
constexpr std::size_t max_stop_bytes = 256;

field element(const field& array, json::value at, std::size_t index) {
  return {at, array.path + "[" + std::to_string(index) + "]"};
}

/// Records that `from` exceeds the append's budget.
void refuse(field_reader& in, const field& from, const std::optional<std::string>& why) {
  if (why) in.fail(error_code::invalid_payload, from.path, *why);
}

text_item read_text(field_reader& in, const field& item, chat_budget& budget) {
  auto text = in.require(item, {"text"});
  if (text.at.is(json::kind::string)) refuse(in, text, budget.add_text(text.at.raw().size()));
  if (in.failed()) return {};
  std::string scratch;
  return {std::string(in.required_text(text, scratch))};
}

/// The budget is checked by length or header before decoding, or during decoding if the header cannot be read from the
/// base64.
pcm read_sound(field_reader& in, const field& data, std::string_view text, chat_budget& budget) {
  const auto claimed = seconds_of_sound(text);
  if (claimed) refuse(in, data, budget.add_seconds(*claimed));
  if (in.failed()) return nullptr;
  auto sound = in.take(decode_sound(text, {0, claimed ? max_chat_seconds : budget.seconds_left()}, data.path));
  if (sound && !claimed) refuse(in, data, budget.add_seconds(static_cast<double>(sound->size()) / unit_samples));
  return sound;
}

audio_item read_audio(field_reader& in, const field& item, chat_budget& budget) {
  auto data = in.require(item, {"data"});
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

video_item read_video(field_reader& in, const field& item, chat_budget& budget) {
  video_item out;
  auto data = in.require(item, {"data"});
  if (data.at.is(json::kind::array)) {
    auto pictures = json::elements(data.at, json::max_values);
    if (pictures.empty()) in.fail(error_code::invalid_payload, data.path, "empty");
    for (std::size_t i = 0; i < pictures.size() && !in.failed(); ++i)
      out.frames.push_back(read_picture(in, element(data, pictures[i], i), budget));
  } else {
    out.frames.push_back(read_picture(in, data, budget));
  }
  in.integer(field_reader::find(item, {"stack_frames"}), 1, field_reader::any, out.stack_frames);
  auto audio = field_reader::find(item, {"audio"});
  std::string scratch;
  if (auto text = in.text(audio, scratch); text && !in.failed()) out.samples = read_sound(in, audio, *text, budget);
  return out;
}

content_item read_item(field_reader& in, const field& item, chat_budget& budget) {
  if (in.required_object(item); in.failed()) return {};
  auto type = in.require(item, {"type"});
  std::string scratch;
  auto name = in.failed() ? std::string_view() : in.required_text(type, scratch);
  if (in.failed()) return {};
  if (name == "text") return read_text(in, item, budget);
  if (name == "audio") return read_audio(in, item, budget);
  if (name == "image") return image_item{read_picture(in, in.require(item, {"data"}), budget)};
  if (name == "video") return read_video(in, item, budget);
  in.fail(error_code::invalid_payload, type.path, "none of text, audio, image, video");
  return {};
}

std::vector<content_item> read_content(field_reader& in, const field& content, chat_budget& budget) {
  std::vector<content_item> out;
  if (content.at.is(json::kind::string)) {
    refuse(in, content, budget.add_text(content.at.raw().size()));
    if (in.failed()) return out;
    out.emplace_back(text_item{json::unescape(content.at)});
    return out;
  }
  auto items = json::elements(content.at, json::max_values);
  if (!content.at.is(json::kind::array)) {
    in.fail(error_code::invalid_payload, content.path, "neither a string nor a list");
  } else if (items.empty()) {
    in.fail(error_code::invalid_payload, content.path, "empty");
  }
  refuse(in, content, budget.add_items(items.size()));
  for (std::size_t i = 0; i < items.size() && !in.failed(); ++i)
    out.push_back(read_item(in, element(content, items[i], i), budget));
  return out;
}

/// A message, and the id of the call whose result it is.
struct read_message {
  message what;
  std::string call_id{};
};

read_message read_chat_message(field_reader& in, const field& from, chat_budget& budget) {
  read_message out;
  auto& what = out.what;
  if (in.required_object(from); in.failed()) return out;
  auto speaker = in.require(from, {"role"});
  if (!in.failed()) what.from = read_role(in, speaker);
  if (!in.failed() && what.from == role::assistant) {
    const auto calls = field_reader::find(from, {"tool_calls"});
    if (calls.at.given()) refuse(in, calls, budget.add_text(calls.at.raw().size()));
    if (!in.failed()) what.calls = read_tool_calls(in, calls);
    if (!what.calls.empty() && !field_reader::find(from, {"content"}).at.given()) return out;
  }
  if (!in.failed() && what.from == role::tool)
    out.call_id = read_call_id(in, field_reader::find(from, {"tool_call_id"}));
  auto content = in.require(from, {"content"});
  if (!in.failed()) what.content = read_content(in, content, budget);
  return out;
}

std::vector<message> read_messages(field_reader& in, const field& from) {
  std::vector<message> out;
  if (!from.at.is(json::kind::array)) {
    in.fail(error_code::invalid_payload, from.path, "not an array");
    return out;
  }
  auto messages = json::elements(from.at, max_messages + 1);
  if (messages.empty() || messages.size() > max_messages) {
    in.fail(error_code::invalid_payload, from.path,
            (messages.empty() ? std::string("empty") : "more than " + std::to_string(max_messages) + " messages"));
    return out;
  }
  out.reserve(messages.size());
  std::vector<std::string> call_ids;
  call_ids.reserve(messages.size());
  chat_budget budget;
  for (std::size_t i = 0; i < messages.size() && !in.failed(); ++i) {
    auto next = read_chat_message(in, element(from, messages[i], i), budget);
    out.push_back(std::move(next.what));
    call_ids.push_back(std::move(next.call_id));
  }
  if (!in.failed()) order_results(in, from, call_ids, out);
  return out;
}

/// As in the OpenAI API: a string, or up to four.
void read_stop(field_reader& in, const field& from, chat_append_event& out) {
  if (!from.at.given()) return;
  const bool several = from.at.is(json::kind::array);
  const auto given = several ? json::elements(from.at, max_stops + 1) : std::vector{from.at};
  if (given.size() > max_stops) in.fail(error_code::invalid_payload, from.path, "more than four");
  for (std::size_t i = 0; i < given.size() && !in.failed(); ++i) {
    const auto each = several ? element(from, given[i], i) : from;
    auto text = json::unescape(each.at, max_stop_bytes);
    if (!each.at.is(json::kind::string))
      in.fail(error_code::invalid_payload, each.path, "not a string");
    else if (!text || text->empty())
      in.fail(error_code::invalid_payload, each.path, "not 1 to 256 bytes");
    else
      out.stop.push_back(*std::move(text));
  }
}

void read_generation(field_reader& in, const field& from, chat_append_event& out) {
  auto at = [&](std::string_view name) { return field_reader::find(from, {name}); };
  in.integer(at("max_new_tokens"), 1, max_answer_tokens, out.max_new_tokens);
  in.number(at("length_penalty"), 0.1, 5.0, out.length_penalty);
  in.number(at("temperature"), 0, 2, out.temperature);
  in.integer(at("top_k"), 0, field_reader::any, out.top_k);
  in.number(at("top_p"), 0, 1, out.top_p);
  in.boolean(at("do_sample"), out.do_sample);
  in.seed(at("seed"), out.seed);
  read_stop(in, at("stop"), out);
}

/// As in the OpenAI API: `text`, `json_object`, or `json_schema` with the schema in it.
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
    if (schema.at.raw().size() > max_schema_bytes)
      return in.fail(error_code::invalid_payload, schema.path, "more than 64 KiB");
    json::append_spaced(schema.at, out.answer_schema);
    check_schema(in, schema, strict, out.answer_schema);
  } else {
    in.fail(error_code::invalid_payload, type.path, "none of text, json_object, json_schema");
  }
}

/// A voice that will not be used is not decoded.
void read_speech(field_reader& in, const field& from, chat_append_event& out) {
  in.boolean(field_reader::find(from, {"enabled"}), out.tts);
  out.use_tts_template = out.use_tts_template || out.tts;
  auto voice = field_reader::find(from, {"ref_audio_data"});
  std::string scratch;
  if (auto text = in.text(voice, scratch); text && out.tts && !in.failed())
    out.tts_voice = in.take(decode_sound(*text, voice_seconds, voice.path));
}

} // namespace

result<chat_append_event> decode_chat_append(const envelope& from, std::int64_t* schema_work) {
  field_reader in;
  if (schema_work) in.schema_work() = *schema_work;
  chat_append_event out;
  auto input = in.require({json::root(from.body), {}}, {"input", "payload", "data"});
  if (in.failed()) return in.failure();
  input = in.required_object(std::move(input));
  if (in.failed()) return in.failure();

  auto at = [&](std::string_view name) { return field_reader::find(input, {name}); };
  out.input_id = field_reader::name(at("input_id"));
  in.boolean(at("streaming"), out.streaming);
  in.boolean(at("omni_mode"), out.omni_mode);
  in.boolean(at("use_tts_template"), out.use_tts_template);
  in.boolean(at("enable_thinking"), out.enable_thinking);
  in.boolean(at("tool_call_deltas"), out.call_pieces);
  read_generation(in, in.object(at("generation")), out);
  in.integer(field_reader::find(in.object(at("image")), {"max_slice_nums"}), 1, max_slices, out.max_slice_nums);
  in.integer(at("logprobs"), 0, max_top_logprobs, out.scored);
  auto messages = in.require(input, {"messages"});
  if (in.failed()) return in.failure();
  out.messages = read_messages(in, messages);
  out.names_tools = at("tools").at.given() || at("tool_choice").at.given();
  if (!in.failed()) read_tools(in, at("tools"), at("tool_choice"), out);
  if (!in.failed()) read_format(in, in.object(at("response_format")), out);
  if (schema_work) *schema_work = in.schema_work();
  if (!in.failed()) read_speech(in, in.object(at("tts")), out);
  if (in.failed()) return in.failure();
  return out;
}

} // namespace parley::protocol
