#include "client/codec/frames.hpp"

#include "protocol/json/writer.hpp"
#include "protocol/media/base64.hpp"

namespace parley::client {

namespace base64 = protocol::base64;
namespace json = protocol::json;
using protocol::dialect;

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
  if (request.resume) payload.boolean("resume", true);
  if (request.system_prompt) payload.text("system_prompt", *request.system_prompt);
  auto config = payload.object("config");
  if (request.force_listen_count) config.integer("force_listen_count", *request.force_listen_count);
  if (request.max_speak_tokens) config.integer("max_new_speak_tokens_per_chunk", *request.max_speak_tokens);
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

} // namespace

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
      std::string frames = R"([")";
      base64::append(std::as_bytes(std::span(picture)), frames);
      into.json("video_frames", frames + R"("])");
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

} // namespace parley::client
