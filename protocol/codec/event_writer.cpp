#include "protocol/codec/event_writer.hpp"

#include "protocol/json/writer.hpp"
#include "protocol/media/base64.hpp"
#include "protocol/media/pcm.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

namespace parley::protocol {
namespace {

std::string base64_of(const image_file& file) {
  std::string out;
  if (file) base64::append(std::as_bytes(std::span(*file)), out);
  return out;
}

std::span<const float> samples_of(const pcm& sound) {
  return sound ? std::span(*sound) : std::span<const float>();
}

/// A list of JSON texts.
template<class List, class Write>
std::string list_of(const List& all, Write write) {
  std::string out = "[";
  for (const auto& each : all) {
    if (out.size() > 1) out += ',';
    write(each, out);
  }
  return out + "]";
}

void write_item(const content_item& item, std::string& to) {
  json::object_writer out(to);
  if (const auto* const text = std::get_if<text_item>(&item)) {
    out.text("type", "text");
    out.text("text", text->text);
  } else if (const auto* const audio = std::get_if<audio_item>(&item)) {
    out.text("type", "audio");
    out.samples("data", samples_of(audio->samples));
  } else if (const auto* const image = std::get_if<image_item>(&item)) {
    out.text("type", "image");
    out.text("data", base64_of(image->file));
  } else {
    const auto& video = std::get<video_item>(item);
    out.text("type", "video");
    out.json("data", list_of(video.frames,
                             [](const auto& file, std::string& into) { json::append_string(base64_of(file), into); }));
    if (video.stack_frames != 1) out.integer("stack_frames", video.stack_frames);
    if (video.samples) out.samples("audio", samples_of(video.samples));
  }
  out.close();
}

void write_call(const conversation::tool_call& call, std::string& to) {
  json::object_writer out(to);
  if (!call.id.empty()) out.text("id", call.id);
  out.text("name", call.name);
  out.text("arguments", call.arguments);
  out.close();
}

void write_message(const message& of, std::string& to) {
  json::object_writer out(to);
  out.text("role", conversation::name_of(of.from));
  if (!of.content.empty()) out.json("content", list_of(of.content, write_item));
  if (!of.calls.empty()) out.json("tool_calls", list_of(of.calls, write_call));
  out.close();
}

void write_context(const text_message& of, std::string& to) {
  json::object_writer out(to);
  out.text("role", conversation::name_of(of.from));
  out.text("content", of.text);
  out.close();
}

void write_picture(const image_file& file, std::string& to) {
  json::append_string(base64_of(file), to);
}

/// Writes the members of one event.
struct writer {
  json::object_writer out;

  void operator()(const init_event& event) {
    out.text("type", "session.init");
    auto payload = out.object("payload");
    if (event.voice) {
      auto voice = payload.object("voice");
      voice.samples("ref_audio_base64", samples_of(event.voice));
      voice.close();
    }
    if (event.has_system_prompt) payload.text("system_prompt", event.system_prompt);
    if (!event.offer.tools.empty())
      payload.json("tools",
                   list_of(event.offer.tools, [](const auto& each, std::string& to) { to += each.signature; }));
    const conversation::duplex_options usual;
    if (event.config != usual) {
      auto config = payload.object("config");
      if (event.config.force_listen_count != usual.force_listen_count)
        config.integer("force_listen_count", event.config.force_listen_count);
      if (!event.config.generate_audio) config.boolean("generate_audio", false);
      config.close();
    }
    payload.close();
  }

  void operator()(const append_event& event) {
    out.text("type", "input.append");
    auto input = out.object("input");
    if (event.samples) input.samples("audio", samples_of(event.samples));
    if (!event.frames.empty()) input.json("video_frames", list_of(event.frames, write_picture));
    if (event.force_listen) input.boolean("force_listen", true);
    if (!event.context.empty()) input.json("context", list_of(event.context, write_context));
    input.close();
  }

  void operator()(const chat_append_event& event) {
    out.text("type", "input.append");
    auto input = out.object("input");
    input.json("messages", list_of(event.messages, write_message));
    if (!event.streaming) input.boolean("streaming", false);
    auto generation = input.object("generation");
    if (event.do_sample) generation.boolean("do_sample", *event.do_sample);
    generation.integer("max_new_tokens", event.max_new_tokens);
    if (event.temperature) generation.number("temperature", *event.temperature, 6);
    if (event.top_p) generation.number("top_p", *event.top_p, 6);
    if (event.top_k) generation.integer("top_k", *event.top_k);
    if (event.seed) generation.integer("seed", static_cast<std::int64_t>(*event.seed));
    if (!event.stop.empty()) generation.json("stop", list_of(event.stop, json::append_string));
    generation.close();
    if (!event.tools_as_written.empty()) input.json("tools", event.tools_as_written);
    if (!event.tool_choice_as_written.empty()) input.json("tool_choice", event.tool_choice_as_written);
    if (!event.format_as_written.empty()) input.json("response_format", event.format_as_written);
    if (event.call_pieces) input.boolean("tool_call_deltas", true);
    if (event.scored) input.integer("logprobs", *event.scored);
    if (event.max_slice_nums) {
      auto image = input.object("image");
      image.integer("max_slice_nums", *event.max_slice_nums);
      image.close();
    }
    if (event.tts) {
      auto tts = input.object("tts");
      tts.boolean("enabled", true);
      if (event.tts_voice) tts.samples("ref_audio_data", samples_of(event.tts_voice));
      tts.close();
    }
    input.close();
  }

  void operator()(const tool_result_event& event) {
    out.text("type", "input.tool_result");
    out.text("tool_call_id", event.call_id);
    event.cancelled ? out.boolean("cancelled", true) : out.text("content", event.result);
  }

  void operator()(const close_event& event) {
    out.text("type", "session.close");
    out.text("reason", event.reason);
  }
};

} // namespace

std::string written(const client_event& event) {
  std::string text;
  writer write{json::object_writer(text)};
  std::visit(write, event);
  write.out.close();
  return text;
}

} // namespace parley::protocol
