#include "base/utf8.hpp"
#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/duplex_config_codec.hpp"
#include "protocol/codec/media_check.hpp"
#include "protocol/codec/tool_codec.hpp"
#include "protocol/json/field_reader.hpp"
#include "protocol/media/picture.hpp"
#include "protocol/media/voice.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace parley::protocol {
namespace {

constexpr std::string_view default_prompt = "You are a helpful assistant.";
constexpr std::size_t max_prompt_bytes = 32'768;

void refuse_prompt(field_reader& in, std::string_view path, std::size_t bytes) {
  in.fail(error_code::invalid_payload, path,
          std::to_string(bytes) + " bytes, at most " + std::to_string(max_prompt_bytes) + " are allowed");
}

std::string read_prompt(field_reader& in, const field& from) {
  std::string scratch;
  if (!from.at.is(json::kind::string)) return std::string(in.required_text(from, scratch)); // says what is wrong
  if (auto out = json::unescape(from.at, max_prompt_bytes)) return *std::move(out);
  refuse_prompt(in, from.path, from.at.raw().size());
  return {};
}

std::optional<bool> read_turn_based(field_reader& in, const field& payload) {
  auto from = field_reader::find(payload, {"mode"});
  std::string scratch;
  auto text = in.text(from, scratch);
  if (!text) return {};
  if (*text != "turn_based" && *text != "full_duplex")
    in.fail(error_code::invalid_payload, from.path, "neither turn_based nor full_duplex");
  return *text == "turn_based";
}

pcm read_voice(field_reader& in, const field& from) {
  std::string scratch;
  auto text = in.text(from, scratch);
  return text ? in.take(decode_sound(*text, voice_seconds, from.path)) : nullptr;
}

/// Clients often send the same voice twice; it is decoded once.
void read_voices(field_reader& in, const field& llm, const field& vocoder, init_event& out) {
  out.voice = read_voice(in, llm);
  auto same =
      !vocoder.at.given() || (out.voice && vocoder.at.is(json::kind::string) && vocoder.at.raw() == llm.at.raw());
  out.tts_voice = same ? out.voice : read_voice(in, vocoder);
}

/// Finds a reference voice in `object` by the names of docs/protocol.md 3.7.
field find_voice(const field& object, std::string_view canonical, std::string_view alias) {
  return field_reader::find(object, {canonical, alias});
}

constexpr std::string_view payload_names[] = {"mode",   "system_prompt", "instructions",
                                              "resume", "tools",         "tool_choice"};
constexpr std::string_view duplex_names[] = {"config",    "duplex",           "max_slice_nums", "voice",
                                             "ref_audio", "ref_audio_base64", "tts_ref_audio",  "tts_ref_audio_base64"};
constexpr std::string_view voice_names[] = {"ref_audio", "ref_audio_base64", "tts_ref_audio", "tts_ref_audio_base64"};
constexpr std::string_view generation_names[] = {"decode_mode", "temperature", "top_k", "top_p"};
constexpr std::string_view config_names[] = {"length_penalty",
                                             "force_listen_count",
                                             "max_new_speak_tokens_per_chunk",
                                             "temperature",
                                             "top_k",
                                             "top_p",
                                             "decode_mode",
                                             "text_repetition_penalty",
                                             "text_repetition_window_size",
                                             "listen_prob_scale",
                                             "listen_top_k",
                                             "tts_temperature",
                                             "generate_audio",
                                             "sliding_window_mode",
                                             "basic_window_high_tokens",
                                             "basic_window_low_tokens",
                                             "unit_responses",
                                             "listen_at_turn_end",
                                             "transcribe_input",
                                             "seed",
                                             "chunk_ms",
                                             "sample_rate",
                                             "max_slice_nums",
                                             "generation"};

constexpr std::size_t most_refused = 16; ///< wishes that are named
constexpr std::size_t most_members = 64; ///< that are looked at
constexpr std::size_t most_name = 64;    ///< bytes of a name that are shown

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Members of an object that have no effect are no errors, but the client is told (docs/protocol.md 3.1). `duplex`: names
/// that have one in audio and video alone.
void refuse_unknown(const field& object, std::string_view prefix, std::span<const std::string_view> known,
                    std::span<const std::string_view> duplex, bool chat, std::vector<refused_wish>& out) {
  if (!object.at.is(json::kind::object)) return;
  for (const auto& [key, value] : json::members(object.at, most_members)) {
    if (!value.given() || out.size() >= most_refused) continue;
    const auto whole = json::unescape(key, most_name);
    if (whole && is_among(known, *whole)) continue;
    const bool other = whole && is_among(duplex, *whole);
    if (other && !chat) continue;
    const auto name = whole ? *whole : std::string(base::utf8::truncate(key.raw(), most_name));
    out.push_back({std::string(prefix) + name, other ? "has no effect in chat" : "is not known to this server"});
  }
}

void read_duplex_payload(field_reader& in, const field& payload, bool with_generation, init_event& out) {
  auto config = in.object(field_reader::find(payload, {"config", "duplex"}));
  if (with_generation) read_generation(in, config, out);
  read_duplex_config(in, config, out);
  in.integer(field_reader::either(field_reader::find(payload, {"max_slice_nums"}),
                                  field_reader::find(config, {"max_slice_nums"})),
             1, max_slices, out.max_slice_nums);
  auto voice = in.object(field_reader::find(payload, {"voice"}));
  auto find = [&](std::string_view canonical, std::string_view alias) {
    return field_reader::either(find_voice(voice, canonical, alias), find_voice(payload, canonical, alias));
  };
  read_voices(in, find("ref_audio_base64", "ref_audio"), find("tts_ref_audio_base64", "tts_ref_audio"), out);
}

void note_refused(const field& payload, bool chat, std::vector<refused_wish>& out) {
  refuse_unknown(payload, "", payload_names, duplex_names, chat, out);
  if (chat) return;
  const auto config = field_reader::find(payload, {"config", "duplex"});
  refuse_unknown(config, "config.", config_names, {}, false, out);
  refuse_unknown(field_reader::find(config, {"generation"}), "config.generation.", generation_names, {}, false, out);
  refuse_unknown(field_reader::find(payload, {"voice"}), "voice.", voice_names, {}, false, out);
}

} // namespace

result<init_event> decode_session_init(const envelope& from, std::optional<mode> url_mode, std::int64_t* schema_work,
                                       bool knows_functions) {
  field_reader in;
  if (schema_work) in.schema_work() = *schema_work;
  init_event out;
  out.spoken = dialect::current;
  auto payload = in.require({json::root(from.body), {}}, {"payload"});
  if (in.failed()) return in.failure();
  payload = in.required_object(std::move(payload));

  if (!url_mode) out.turn_based = read_turn_based(in, payload);
  in.boolean(field_reader::find(payload, {"resume"}), out.resume);
  auto chat = url_mode ? *url_mode == mode::chat : out.turn_based.value_or(false);
  auto prompt = field_reader::find(payload, {"system_prompt", "instructions"});
  out.has_system_prompt = prompt.at.given();
  if (out.has_system_prompt) {
    out.system_prompt = read_prompt(in, prompt);
  } else if (!chat) {
    out.system_prompt = default_prompt;
  }
  if (!chat && !in.failed()) read_duplex_payload(in, payload, knows_functions, out);
  if ((chat || knows_functions) && !in.failed())
    read_tools(in, field_reader::find(payload, {"tools"}), field_reader::find(payload, {"tool_choice"}), out.offer);
  note_refused(payload, chat, out.refused);
  if (schema_work) *schema_work = in.schema_work();
  if (in.failed()) return in.failure();
  return out;
}

result<init_event> checked(init_event from, mode kind) {
  field_reader in;
  if (from.system_prompt.size() > max_prompt_bytes)
    refuse_prompt(in, "payload.system_prompt", from.system_prompt.size());
  check_tools(in, "payload.tools", from.offer);
  if (kind != mode::chat) {
    if (!from.has_system_prompt) from.system_prompt = default_prompt;
    check_duplex_config(in, from.config);
    in.check_integer("payload.max_slice_nums", 1, max_slices, from.max_slice_nums);
    check_sound(in, "payload.voice.ref_audio_base64", from.voice, voice_seconds);
    if (!from.tts_voice) from.tts_voice = from.voice;
    if (from.tts_voice != from.voice)
      check_sound(in, "payload.voice.tts_ref_audio_base64", from.tts_voice, voice_seconds);
  }
  if (in.failed()) return in.failure();
  return from;
}

result<init_event> decode_session_update(const envelope& from, mode kind) {
  field_reader in;
  init_event out;
  out.spoken = dialect::legacy;
  auto session = in.require({json::root(from.body), {}}, {"session"});
  if (in.failed()) return in.failure();
  session = in.required_object(std::move(session));
  if (in.failed()) return in.failure();

  auto prompt = in.require(session, {"instructions"});
  if (in.failed()) return in.failure();
  out.has_system_prompt = true;
  out.system_prompt = read_prompt(in, prompt);
  if (out.system_prompt.empty()) in.fail(error_code::invalid_payload, prompt.path, "empty");
  if (kind == mode::video)
    in.integer(field_reader::find(session, {"max_slice_nums"}), 1, max_slices, out.max_slice_nums);
  if (!in.failed())
    read_voices(in, find_voice(session, "ref_audio", "ref_audio_base64"),
                find_voice(session, "tts_ref_audio", "tts_ref_audio_base64"), out);
  if (in.failed()) return in.failure();
  return out;
}

} // namespace parley::protocol
