#include "protocol/chat_budget.hpp"
#include "protocol/codec/chat_parts.hpp"
#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/media_check.hpp"
#include "protocol/codec/message_codec.hpp"
#include "protocol/codec/number_visitors.hpp"
#include "protocol/codec/tool_codec.hpp"
#include "protocol/codec/tool_results.hpp"
#include "protocol/json/field_reader.hpp"
#include "protocol/limits.hpp"
#include "protocol/media/picture.hpp"
#include "protocol/media/voice.hpp"

#include <algorithm>

namespace parley::protocol {
namespace {

constexpr int max_answer_tokens = 4096;
constexpr int max_top_logprobs = 20;

video_item read_video(field_reader& in, const field& item, chat_budget& budget) {
  video_item out;
  auto data = in.require(item, {"data"});
  if (data.at.is(json::kind::array)) {
    auto pictures = json::elements(data.at, json::max_values);
    if (pictures.empty()) in.fail(error_code::invalid_payload, data.path, "empty");
    for (std::size_t i = 0; i < pictures.size() && !in.failed(); ++i)
      out.frames.push_back(read_picture(in, field_reader::element(data, pictures[i], i), budget));
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
  if (name == "text") return read_text(in, in.require(item, {"text"}), budget);
  if (name == "audio") return read_audio(in, in.require(item, {"data"}), budget);
  if (name == "image") return image_item{read_picture(in, in.require(item, {"data"}), budget)};
  if (name == "video") return read_video(in, item, budget);
  in.fail(error_code::invalid_payload, type.path, "none of text, audio, image, video");
  return {};
}

std::vector<content_item> read_content(field_reader& in, const field& content, chat_budget& budget) {
  std::vector<content_item> out;
  if (content.at.is(json::kind::string)) {
    auto text = read_text(in, content, budget);
    if (!in.failed()) out.emplace_back(std::move(text));
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
    out.push_back(read_item(in, field_reader::element(content, items[i], i), budget));
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
    what.calls = read_calls(in, field_reader::find(from, {"tool_calls"}), budget);
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
  auto messages = json::elements(from.at, max_chat_messages + 1);
  if (refuses_messages(in, from.path, messages.size())) return out;
  out.reserve(messages.size());
  std::vector<std::string> call_ids;
  call_ids.reserve(messages.size());
  chat_budget budget;
  for (std::size_t i = 0; i < messages.size() && !in.failed(); ++i) {
    auto next = read_chat_message(in, field_reader::element(from, messages[i], i), budget);
    out.push_back(std::move(next.what));
    call_ids.push_back(std::move(next.call_id));
  }
  if (!in.failed()) order_results(in, from, call_ids, out);
  return out;
}

/// Goes through the numbers of a turn in the order in which they are read: their names, bounds and values.
template<class Turn, class Visitor>
void go_through_numbers(Turn& of, Visitor& to) {
  to.integer("max_new_tokens", 1, max_answer_tokens, of.max_new_tokens);
  to.number("length_penalty", 0.1, 5.0, of.length_penalty);
  to.number("temperature", 0, 2, of.temperature);
  to.integer("top_k", 0, field_reader::any, of.top_k);
  to.number("top_p", 0, 1, of.top_p);
}

void read_generation(field_reader& in, const field& from, chat_append_event& out) {
  number_reader read{in, from};
  go_through_numbers(out, read);
  auto at = [&](std::string_view name) { return field_reader::find(from, {name}); };
  in.boolean(at("do_sample"), out.do_sample);
  in.seed(at("seed"), out.seed);
  read_stop(in, at("stop"), out);
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

namespace {

/// The parts of one message that never was text.
class content_checker {
public:
  content_checker(field_reader& in, chat_budget& budget, std::string path)
      : in_(in), budget_(budget), path_(std::move(path)) {}

  void operator()(const text_item& item) { refuse(".text", budget_.add_text(item.text.size())); }
  void operator()(const audio_item& item) {
    if (!item.samples) return in_.fail(error_code::missing_field, path_ + ".data", "required");
    sound(".data", item.samples);
  }
  void operator()(const image_item& item) { picture(".data", item.file); }
  void operator()(const video_item& item) {
    if (item.frames.empty()) refuse(".data", "empty");
    for (std::size_t i = 0; i < item.frames.size() && !in_.failed(); ++i)
      picture(".data[" + std::to_string(i) + "]", item.frames[i]);
    in_.check_integer(path_ + ".stack_frames", 1, field_reader::any, item.stack_frames);
    if (item.samples) sound(".audio", item.samples);
  }

private:
  void refuse(std::string_view where, const std::optional<std::string>& why) {
    if (why) in_.fail(error_code::invalid_payload, path_ + std::string(where), *why);
  }
  void sound(std::string_view where, const pcm& samples) {
    refuse(where, budget_.add_seconds(static_cast<double>(samples->size()) / unit_samples));
    check_sound(in_, path_ + std::string(where), samples, seconds_range{0, max_chat_seconds});
  }
  void picture(const std::string& where, const image_file& file) {
    refuse(where, budget_.add_pictures(1));
    check_image(in_, path_ + where, file, picture_kinds::jpeg_png_webp);
  }

  field_reader& in_;
  chat_budget& budget_;
  const std::string path_;
};

/// On the wire that may be a string, which is no item.
bool is_one_text(const message& of) {
  return of.content.size() == 1 && std::holds_alternative<text_item>(of.content.front());
}

void check_message(field_reader& in, const std::string& path, const message& of, chat_budget& budget) {
  check_tool_calls(in, path + ".tool_calls", of.calls);
  for (const auto& call : of.calls)
    refuse(in, {{}, path + ".tool_calls"}, budget.add_text(call.name.size() + call.arguments.size()));
  if (of.content.empty() && !of.calls.empty()) return;
  if (of.content.empty()) in.fail(error_code::invalid_payload, path + ".content", "empty");
  if (!is_one_text(of)) refuse(in, {{}, path + ".content"}, budget.add_items(of.content.size()));
  for (std::size_t i = 0; i < of.content.size() && !in.failed(); ++i)
    std::visit(content_checker(in, budget, path + ".content[" + std::to_string(i) + "]"), of.content[i]);
}

void clamp(pcm& sound) {
  sound = clamped(std::move(sound));
}

void clamp_sounds(std::vector<message>& messages) {
  for (auto& each : messages)
    for (auto& item : each.content) {
      if (auto* const audio = std::get_if<audio_item>(&item)) clamp(audio->samples);
      if (auto* const video = std::get_if<video_item>(&item)) clamp(video->samples);
    }
}

} // namespace

result<chat_append_event> checked(chat_append_event from) {
  field_reader in;
  number_checker numbers{in, "input.generation."};
  go_through_numbers(from, numbers);
  check_count_of_stops(in, "input.generation.stop", from.stop.size());
  for (std::size_t i = 0; i < from.stop.size(); ++i)
    check_stop(in, "input.generation.stop[" + std::to_string(i) + "]", from.stop[i].size());
  if (from.max_slice_nums) in.check_integer("input.image.max_slice_nums", 1, max_slices, *from.max_slice_nums);
  if (from.scored) in.check_integer("input.logprobs", 0, max_top_logprobs, *from.scored);
  const std::string path = "input.messages";
  chat_budget budget;
  if (!refuses_messages(in, path, from.messages.size()))
    for (std::size_t i = 0; i < from.messages.size() && !in.failed(); ++i)
      check_message(in, path + "[" + std::to_string(i) + "]", from.messages[i], budget);
  if (!in.failed()) order_results(in, {{}, path}, std::vector<std::string>(from.messages.size()), from.messages);
  if (!in.failed()) check_tools(in, "input.tools", from, from.tools_as_written.size());
  refuses_schema(in, "input.response_format.schema", from.answer_schema.size());
  if (!from.tts) from.tts_voice = nullptr;
  check_sound(in, "input.tts.ref_audio_data", from.tts_voice, voice_seconds);
  if (in.failed()) return in.failure();
  from.use_tts_template = from.use_tts_template || from.tts;
  clamp_sounds(from.messages);
  return from;
}

} // namespace parley::protocol
