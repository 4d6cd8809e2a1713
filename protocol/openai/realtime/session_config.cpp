#include "protocol/openai/realtime/session_config.hpp"

#include "protocol/codec/tool_codec.hpp"
#include "protocol/json/field_reader.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/openai/shared/audio_format.hpp"

#include <algorithm>
#include <utility>

namespace parley::protocol::openai::realtime {
namespace {

constexpr std::size_t max_echo_bytes = 4u << 10; ///< of a value that is only echoed
constexpr std::size_t max_name_bytes = 256;
constexpr int default_silence_ms = 500;

/// A value that is kept as it was written; longer ones are not kept.
void read_echo(const field_set& from, std::string_view name, std::string& into) {
  const auto given = from.at(name);
  if (!given.present() || given.raw().size() > max_echo_bytes) return;
  into = given.is(json::kind::string) ? "\"" + std::string(given.raw()) + "\"" : std::string(given.raw());
}

/// `auto`, or an object with these members; anything else could not be shown.
void read_tracing(field_set& from, std::string& into) {
  constexpr std::string_view members[] = {"workflow_name", "group_id", "metadata"};
  const auto given = from.at("tracing");
  if (given.is(json::kind::object))
    from.object("tracing").only(members);
  else if (given.given() && !(given.is(json::kind::string) && json::means(given, "auto")))
    return from.refuse_value("tracing", "it must be auto or an object.");
  read_echo(from, "tracing", into);
}

void read_truncation(field_set& from, std::string& into) {
  const auto given = from.at("truncation");
  if (!given.given()) return;
  if (given.is(json::kind::object)) {
    constexpr std::string_view members[] = {"type", "retention_ratio", "token_limits"};
    auto ratio = from.object("truncation");
    ratio.only(members);
    if (ratio.required_text("type") != "retention_ratio")
      return ratio.refuse_value("type", "it must be retention_ratio.");
    ratio.require("retention_ratio");
    ratio.number("retention_ratio", 0, 1);
    ratio.object("token_limits");
  } else if (!given.is(json::kind::string) || !(json::means(given, "auto") || json::means(given, "disabled"))) {
    return from.refuse_value("truncation", "it must be auto, disabled or an object.");
  }
  read_echo(from, "truncation", into);
}

/// The beta names formats otherwise.
std::string_view ga_format(std::string_view name) {
  if (name == "pcm16") return "audio/pcm";
  if (name == "g711_ulaw") return "audio/pcmu";
  if (name == "g711_alaw") return "audio/pcma";
  return name;
}

/// A format as an object, or as its name alone.
void read_format(field_set& from, std::string_view name, speech::sound_format& into) {
  const auto given = from.at(name);
  if (!given.given() || from.failed()) return;
  std::optional<speech::sound_format> found;
  if (given.is(json::kind::string)) {
    found = audio_format_of(ga_format(from.text(name).value_or("")), std::nullopt);
  } else {
    constexpr std::string_view members[] = {"type", "rate"};
    auto format = from.object(name);
    format.only(members);
    const auto type = format.required_text("type");
    const auto rate = format.integer("rate", 1, 1'000'000);
    if (from.failed()) return;
    found = audio_format_of(ga_format(type), rate);
  }
  if (found)
    into = *found;
  else
    from.refuse_value(name, "this server takes audio/pcm at 24000 or 16000 Hz, audio/pcmu and audio/pcma.");
}

/// Azure gives the rate of PCM a member of its own.
void read_rate(field_set& from, std::int64_t rate, speech::sound_format& into) {
  if (into.coding != speech::sound_coding::pcm16) return;
  if (const auto found = audio_format_of("audio/pcm", rate))
    into = *found;
  else
    from.refuse_value("input_audio_sampling_rate", "this server takes 24000 and 16000 Hz.");
}

/// Never an error: some clients end when there is one.
void read_transcription(const field_set& from, std::string_view name, session_config& into) {
  const auto given = from.at(name);
  if (!given.present()) return;
  into.transcription = {};
  if (!given.is(json::kind::object)) return;
  const auto text = [&](std::string_view name, std::size_t most) {
    const auto value = json::member(given, name);
    if (!value.is(json::kind::string) || value.raw().size() > most) return std::string();
    return json::unescape(value);
  };
  auto& wish = into.transcription;
  wish.given = true;
  wish.model = text("model", max_name_bytes);
  if (wish.model.empty()) wish.model = into.model;
  wish.language = text("language", max_name_bytes);
  wish.prompt = text("prompt", max_echo_bytes);
}

void read_turn_detection(field_set& from, turn_detection& into) {
  // Azure's clients switch it off with a type of its own.
  constexpr std::string_view off = "none";
  const auto whole = from.at("turn_detection");
  if (from.is_null("turn_detection") || (whole.is(json::kind::string) && json::means(whole, off))) {
    into.type = turn_detection::kind::none;
    return;
  }
  turn_detection read;
  if (whole.is(json::kind::string)) { // as the first clients of the beta wrote it
    if (!json::means(whole, "server_vad") && !json::means(whole, "semantic_vad"))
      return from.refuse_value("turn_detection", "it must be server_vad or semantic_vad.");
    read.type =
        json::means(whole, "server_vad") ? turn_detection::kind::server_vad : turn_detection::kind::semantic_vad;
    into = std::move(read);
    return;
  }
  constexpr std::string_view members[] = {"type",
                                          "threshold",
                                          "prefix_padding_ms",
                                          "silence_duration_ms",
                                          "idle_timeout_ms",
                                          "create_response",
                                          "interrupt_response",
                                          "eagerness"};
  auto given = from.object("turn_detection");
  if (!given.given()) return;
  given.only(members);
  const auto type = given.required_text("type");
  if (type == off) {
    into.type = turn_detection::kind::none;
    return;
  }
  if (type != "server_vad" && type != "semantic_vad")
    return given.refuse_value("type", "it must be server_vad or semantic_vad.");
  read.type = type == "server_vad" ? turn_detection::kind::server_vad : turn_detection::kind::semantic_vad;
  read.create_response = given.boolean("create_response").value_or(true);
  read.interrupt_response = given.boolean("interrupt_response").value_or(true);
  read.threshold = given.number("threshold", 0, 1).value_or(read.threshold);
  read.prefix_padding_ms = static_cast<int>(given.integer("prefix_padding_ms", 0, 5000).value_or(300));
  read.silence_duration_ms =
      static_cast<int>(given.integer("silence_duration_ms", 0, 10'000).value_or(default_silence_ms));
  const auto eagerness = given.text("eagerness").value_or("auto");
  if (eagerness != "low" && eagerness != "medium" && eagerness != "high" && eagerness != "auto")
    given.refuse_value("eagerness", "it must be low, medium, high or auto.");
  read.eagerness = eagerness;
  into = std::move(read);
}

} // namespace

namespace {

/// An error of the shared check, in this API's words.
fault fault_of(const error& why) {
  const auto path = why.message.substr(0, why.message.find(": "));
  if (why.code == error_code::missing_field)
    return {"missing_required_parameter", "Missing required parameter: '" + path + "'.", path};
  return invalid_value(path, why.message.substr(std::min(path.size() + 2, why.message.size())) + ".").value();
}

/// As the API shows them: flat, whichever form the client used.
std::string flat_tools(json::value tools) {
  std::string out = "[";
  for (const auto& each : json::elements(tools, json::max_values)) {
    out += out.size() > 1 ? "," : "";
    const auto nested = json::member(each, "function");
    if (!nested.given()) {
      out += each.raw();
      continue;
    }
    json::object_writer write(out);
    write.text("type", "function");
    for (const char* name : {"name", "description", "parameters"}) {
      const auto value = json::member(nested, name);
      if (value.is(json::kind::string))
        write.text(name, json::unescape(value));
      else if (value.given())
        write.json(name, value.raw());
    }
    write.close();
  }
  return out + "]";
}

std::string encode_choice(const tool_choice& of) {
  if (of.name.empty())
    return of.mode == tool_choice::how::none       ? R"("none")"
           : of.mode == tool_choice::how::required ? R"("required")"
                                                   : R"("auto")";
  std::string out;
  json::object_writer write(out);
  write.text("type", "function");
  write.text("name", of.name);
  write.close();
  return out;
}

} // namespace

namespace {

/// What is wrong, or that checking it would take too long now.
void fail(field_set& from, field_reader& in, const event_sound* event) {
  const auto busy = event != nullptr ? event->too_much_checked() : std::nullopt;
  from.fail(busy ? *busy : fault_of(in.failure().value()));
}

constexpr std::size_t max_tools = 128;

/// Whether a list of tools is what is kept, and so has been checked. Nested ones lose members on their way.
bool are_same(json::value tools, std::string_view kept) {
  if (tools.raw().size() > kept.size() + kept.size() / 4) return false;
  const auto all = json::elements(tools, max_tools + 1);
  return std::none_of(all.begin(), all.end(),
                      [](json::value each) { return json::member(each, "function").given(); }) &&
         flat_tools(tools) == kept;
}

} // namespace

void read_tools(field_set& from, std::string& into, std::string& choice, event_sound* event) {
  const field tools{from.at("tools"), from.path_of("tools")},
      wanted{from.at("tool_choice"), from.path_of("tool_choice")};
  if (from.failed() || (!tools.at.given() && !wanted.at.given())) return;
  field_reader in;
  const auto before = json::scan(into), chosen_before = json::scan(choice);
  const bool same = !tools.at.given() || are_same(tools.at, into);
  if (event == nullptr || same)
    in.trust_schemas();
  else
    in.schema_work() = event->schema_steps();
  const auto offered = read_tool_list(in, tools.at.given() ? tools : field{json::root(before), tools.path});
  if (event != nullptr && !same) event->schema_steps() = in.schema_work();
  if (!in.failed()) {
    const auto chosen = read_tool_choice(in, wanted, offered);
    if (!chosen.allowed.empty())
      return from.refuse_value("tool_choice", "it may be auto, none, required or a function.");
    if (!in.failed() && wanted.at.given()) choice = encode_choice(chosen);
  }
  if (in.failed()) return fail(from, in, event);
  if (tools.at.given()) into = flat_tools(tools.at);
  if (wanted.at.given()) return;
  // A function that is not offered any more cannot be the one to call.
  field_reader still;
  read_tool_choice(still, {json::root(chosen_before), wanted.path}, offered);
  if (still.failed()) choice = R"("auto")";
}

void check_functions(field_set& from, event_sound& event) {
  const field tools{from.at("tools"), from.path_of("tools")};
  if (tools.at.given() && !tools.at.is(json::kind::array)) return from.refuse_value("tools", "it must be a list.");
  const auto all = json::elements(tools.at, max_tools + 1);
  if (all.size() > max_tools) return from.refuse_value("tools", "more than 128 tools.");
  field_reader in;
  in.schema_work() = event.schema_steps();
  for (std::size_t i = 0; i < all.size() && !in.failed(); ++i) {
    const auto type = json::member(all[i], "type");
    if (type.present() && !(type.is(json::kind::string) && json::means(type, "function"))) continue;
    read_tool(in, {all[i], tools.path + "[" + std::to_string(i) + "]"});
  }
  event.schema_steps() = in.schema_work();
  if (in.failed()) fail(from, in, &event);
}

namespace {

std::string encode_transcription(const session_config& of) {
  if (!of.wants_transcripts()) return "null";
  const auto& wish = of.transcription;
  std::string out;
  json::object_writer write(out);
  write.text("model", wish.model);
  if (!wish.language.empty()) write.text("language", wish.language);
  if (!wish.prompt.empty()) write.text("prompt", wish.prompt);
  write.close();
  return out;
}

std::string encode_turns(const turn_detection& of) {
  if (of.type == turn_detection::kind::none) return "null";
  std::string out;
  json::object_writer write(out);
  if (of.type == turn_detection::kind::server_vad) {
    write.text("type", "server_vad");
    write.number("threshold", of.threshold, 2);
    write.integer("prefix_padding_ms", of.prefix_padding_ms);
    write.integer("silence_duration_ms", of.silence_duration_ms);
    write.json("idle_timeout_ms", "null");
  } else {
    write.text("type", "semantic_vad");
    write.text("eagerness", of.eagerness);
  }
  write.boolean("create_response", of.create_response);
  write.boolean("interrupt_response", of.interrupt_response);
  write.close();
  return out;
}

} // namespace

void read_output_modalities(field_set& from, bool& audible) {
  const auto name = from.spelled({"output_modalities", "modalities"});
  const auto given = from.at(name);
  if (!given.given()) return;
  bool any = false, aloud = false;
  for (const auto& each : json::elements(given, 4)) {
    const bool audio = each.is(json::kind::string) && json::means(each, "audio");
    if (!audio && !(each.is(json::kind::string) && json::means(each, "text")))
      return from.refuse_value(name, "it may hold text and audio.");
    any = true;
    aloud = aloud || audio;
  }
  if (!any) return from.refuse_value(name, "it must be a list of text or audio.");
  audible = aloud;
}

void read_max_output_tokens(field_set& from, int& into) {
  const auto name = from.spelled({"max_output_tokens", "max_response_output_tokens"});
  const auto given = from.at(name);
  if (given.is(json::kind::string) && json::means(given, "inf"))
    into = 0;
  else if (const auto most = from.integer(name, 1, max_answer_tokens))
    into = static_cast<int>(*most);
}

namespace {

/// A custom voice is an object with an id. It is echoed as a string: some clients take nothing else.
void read_voice(field_set& from, std::string& into) {
  if (from.at("voice").is(json::kind::object)) {
    auto voice = from.object("voice");
    if (auto id = voice.short_text(voice.spelled({"id", "name"}))) into = std::move(*id);
  } else if (auto name = from.short_text("voice")) {
    into = std::move(*name);
  }
}

constexpr std::string_view audio_members[] = {"input", "output", "voice", "format"};
constexpr std::string_view input_members[] = {"format", "noise_reduction", "transcription", "turn_detection"};
constexpr std::string_view output_members[] = {"format", "voice", "speed"};
constexpr std::string_view session_members[] = {
    "type", "object", "id", "expires_at", "client_secret", "model", "output_modalities", "instructions", "tools",
    "tool_choice", "max_output_tokens", "tracing", "prompt", "truncation", "include", "audio", "parallel_tool_calls",
    "reasoning",
    // the beta's
    "modalities", "voice", "input_audio_format", "output_audio_format", "input_audio_transcription", "turn_detection",
    "input_audio_noise_reduction", "temperature", "max_response_output_tokens", "speed",
    // Azure's
    "input_audio_sampling_rate", "input_audio_echo_cancellation"};

} // namespace

void read_output_audio(field_set& from, speech::sound_format& format, std::string& voice) {
  auto audio = from.object("audio");
  auto output = audio.object("output");
  output.only(output_members);
  // In a session or response, as in the beta; in `audio`, as in chat completions.
  read_format(from, "output_audio_format", format);
  read_voice(from, voice);
  for (auto* each : {&audio, &output}) {
    read_format(*each, "format", format);
    read_voice(*each, voice);
  }
}

void read_instructions(field_set& from, std::string& into) {
  if (auto text = from.text("instructions", max_instructions_bytes)) into = *std::move(text);
}

result<session_config> updated(const session_config& before, json::value session, event_sound* event) {
  session_config to = before;
  std::optional<fault> wrong;
  field_set from(session, "session", wrong);
  if (const auto type = from.text("type"); type && *type != "realtime")
    return refuse("unsupported_session_type", "This server has sessions of type realtime only.", "session.type");
  from.only(session_members);
  if (auto model = from.short_text("model")) to.model = std::move(*model);
  read_instructions(from, to.instructions);
  read_output_modalities(from, to.audible);
  read_max_output_tokens(from, to.max_output_tokens);
  read_tools(from, to.tools, to.tool_choice, event);
  read_tracing(from, to.tracing);
  read_truncation(from, to.truncation);
  if (from.at("prompt").given()) from.refuse_value("prompt", "this server keeps no prompts.");
  auto audio = from.object("audio");
  audio.only(audio_members);
  auto input = audio.object("input");
  input.only(input_members);
  // What is nested wins over flat members.
  read_format(from, "input_audio_format", to.input);
  read_format(audio, "format", to.input); // Live has one for both directions
  if (const auto rate = from.integer("input_audio_sampling_rate", 1, 1'000'000)) read_rate(from, *rate, to.input);
  read_format(input, "format", to.input);
  read_turn_detection(from, to.turns);
  read_turn_detection(input, to.turns);
  read_transcription(from, "input_audio_transcription", to);
  read_transcription(input, "transcription", to);
  read_output_audio(from, to.output, to.voice);
  for (auto each : {from, audio.object("output")})
    if (const auto speed = each.number("speed", 0.25, 1.5)) to.speed = *speed;
  if (wrong) return tl::unexpected(std::move(*wrong));
  return to;
}

std::string encode_session(const session_config& of, std::string_view id, std::int64_t expires_at_s) {
  std::string out;
  json::object_writer write(out);
  write.text("type", "realtime");
  write.text("object", "realtime.session");
  write.text("id", id);
  write.text("model", of.model);
  write.json("output_modalities", of.audible ? R"(["audio"])" : R"(["text"])");
  write.text("instructions", of.instructions);
  write.json("tools", of.tools);
  write.json("tool_choice", of.tool_choice);
  of.max_output_tokens == 0 ? write.text("max_output_tokens", "inf")
                            : write.integer("max_output_tokens", of.max_output_tokens);
  write.json("tracing", of.tracing);
  write.json("prompt", "null");
  write.json("truncation", of.truncation);
  write.json("include", "null");
  write.integer("expires_at", expires_at_s);
  auto audio = write.object("audio");
  auto input = audio.object("input");
  input.json("format", encode_format(of.input));
  input.json("transcription", encode_transcription(of));
  input.json("noise_reduction", "null");
  input.json("turn_detection", encode_turns(of.turns));
  input.close();
  auto output = audio.object("output");
  output.json("format", encode_format(of.output));
  output.text("voice", of.voice);
  output.number("speed", of.speed, 2);
  output.close();
  audio.close();
  write.close();
  return out;
}

} // namespace parley::protocol::openai::realtime
