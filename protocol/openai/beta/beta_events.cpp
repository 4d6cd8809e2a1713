#include "protocol/openai/beta/beta_events.hpp"

#include "protocol/json/document.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace parley::protocol::openai::beta {
namespace {

using beta_json = nlohmann::ordered_json;
using name_pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<name_pair, 7> beta_types{{
    {"response.output_audio.delta", "response.audio.delta"},
    {"response.output_audio.done", "response.audio.done"},
    {"response.output_audio_transcript.delta", "response.audio_transcript.delta"},
    {"response.output_audio_transcript.done", "response.audio_transcript.done"},
    {"response.output_text.delta", "response.text.delta"},
    {"response.output_text.done", "response.text.done"},
    {"conversation.item.added", "conversation.item.created"},
}};
constexpr std::array<name_pair, 3> beta_formats{{
    {"audio/pcm", "pcm16"},
    {"audio/pcmu", "g711_ulaw"},
    {"audio/pcma", "g711_alaw"},
}};
constexpr std::array<name_pair, 2> beta_content{{{"output_text", "text"}, {"output_audio", "audio"}}};

/// Members of a session or response that only the beta has.
constexpr std::array<const char*, 9> beta_members{"modalities",
                                                  "voice",
                                                  "input_audio_format",
                                                  "output_audio_format",
                                                  "input_audio_transcription",
                                                  "turn_detection",
                                                  "input_audio_noise_reduction",
                                                  "temperature",
                                                  "max_response_output_tokens"};

/// Members that have the same name in both.
constexpr std::array<const char*, 9> same_members{
    "model", "instructions", "tools", "tool_choice", "tracing", "conversation", "metadata", "truncation", "input"};

std::string_view type_of_event(std::string_view frame, json::document& document) {
  document = json::scan(frame);
  const auto type = json::member(json::root(document), "type");
  return type.is(json::kind::string) ? type.raw() : std::string_view();
}

/// The most members that an object may have here: reading one that keeps their order takes quadratic time.
constexpr std::size_t most_members = 128;

/// The most bytes of a client's event that are rewritten: a session's instructions and tools, each character an escape. A
/// longer one goes on as it is, to be refused.
constexpr std::size_t most_rewritten = 1u << 20;

bool has_wide_object(const json::document& document) {
  for (std::uint32_t at = 0; at < document.nodes.size(); ++at)
    if (json::count_members({document, at}, most_members + 1) > most_members) return true;
  return false;
}

/// Null if it is not JSON for this reader.
beta_json parsed(const json::document& document) {
  if (has_wide_object(document)) return beta_json();
  auto out = beta_json::parse(document.text, nullptr, false);
  return out.is_object() ? out : beta_json();
}

std::string written(const beta_json& event) {
  return event.dump(-1, ' ', false, beta_json::error_handler_t::replace);
}

// ---- from the beta

void move_member(beta_json& from, const char* name, beta_json& to, const char* new_name) {
  const auto found = from.find(name);
  if (found == from.end()) return;
  to[new_name] = std::move(*found);
  from.erase(name);
}

beta_json ga_format(const beta_json& name) {
  if (!name.is_string()) return name;
  const auto& text = name.get_ref<const std::string&>();
  const auto found =
      std::find_if(beta_formats.begin(), beta_formats.end(), [&](auto& each) { return each.second == text; });
  return {{"type", found == beta_formats.end() ? text : std::string(found->first)}};
}

/// A session or a response.
beta_json ga_form(beta_json flat, bool is_session) {
  beta_json out = beta_json::object();
  if (is_session) out["type"] = "realtime";
  for (const auto* name : same_members) move_member(flat, name, out, name);
  if (const auto found = flat.find("modalities"); found != flat.end() && found->is_array()) {
    const bool aloud = std::find(found->begin(), found->end(), "audio") != found->end();
    out["output_modalities"] = beta_json::array({aloud ? "audio" : "text"});
    flat.erase("modalities");
  }
  move_member(flat, "max_output_tokens", out, "max_output_tokens");
  move_member(flat, "max_response_output_tokens", out, "max_output_tokens");
  beta_json input = beta_json::object(), output = beta_json::object();
  if (flat.contains("input_audio_format")) input["format"] = ga_format(flat["input_audio_format"]);
  move_member(flat, "input_audio_transcription", input, "transcription");
  move_member(flat, "input_audio_noise_reduction", input, "noise_reduction");
  move_member(flat, "turn_detection", input, "turn_detection");
  if (flat.contains("output_audio_format")) output["format"] = ga_format(flat["output_audio_format"]);
  move_member(flat, "voice", output, "voice");
  move_member(flat, "speed", output, "speed");
  if (!input.empty()) out["audio"]["input"] = std::move(input);
  if (!output.empty()) out["audio"]["output"] = std::move(output);
  // The rest is the machine's to judge.
  for (const auto* name : {"input_audio_format", "output_audio_format"}) flat.erase(name);
  for (auto& [name, value] : flat.items())
    if (!out.contains(name)) out[name] = std::move(value);
  return out;
}

// ---- to the beta

beta_json beta_format(const beta_json& format) {
  const auto type = format.value("type", "");
  const auto found =
      std::find_if(beta_formats.begin(), beta_formats.end(), [&](auto& each) { return each.first == type; });
  return found == beta_formats.end() ? "pcm16" : std::string(found->second);
}

beta_json beta_modalities(const beta_json& ga) {
  return ga == beta_json::array({"audio"}) ? beta_json::array({"text", "audio"}) : beta_json::array({"text"});
}

void rename_content(beta_json& item) {
  const auto content = item.find("content");
  if (content == item.end()) return;
  for (auto& part : *content)
    for (const auto& [ga, beta] : beta_content)
      if (part["type"] == ga) part["type"] = beta;
}

beta_json beta_session(const beta_json& ga, double temperature) {
  const auto& input = ga["audio"]["input"];
  const auto& output = ga["audio"]["output"];
  return {{"object", ga["object"]},
          {"id", ga["id"]},
          {"model", ga["model"]},
          {"modalities", beta_modalities(ga["output_modalities"])},
          {"instructions", ga["instructions"]},
          {"voice", output["voice"]},
          {"input_audio_format", beta_format(input["format"])},
          {"output_audio_format", beta_format(output["format"])},
          {"input_audio_transcription", input["transcription"]},
          {"turn_detection", input["turn_detection"]},
          {"tools", ga["tools"]},
          {"tool_choice", ga["tool_choice"]},
          {"temperature", temperature},
          {"max_response_output_tokens", ga["max_output_tokens"]},
          {"expires_at", ga["expires_at"]}};
}

void make_beta_response(beta_json& response, double temperature) {
  response["modalities"] = beta_modalities(response["output_modalities"]);
  const auto output = response["audio"]["output"];
  response["voice"] = output["voice"];
  response["output_audio_format"] = beta_format(output["format"]);
  response["temperature"] = temperature;
  response.erase("output_modalities");
  response.erase("audio");
  for (auto& item : response["output"]) rename_content(item);
}

} // namespace

bool is_beta_update(std::string_view frame) {
  json::document document;
  if (type_of_event(frame, document) != "session.update") return false;
  const auto session = json::member(json::root(document), "session");
  if (!session.is(json::kind::object) || json::member(session, "type").present()) return false;
  return std::any_of(beta_members.begin(), beta_members.end(),
                     [&](auto* name) { return json::member(session, name).present(); });
}

std::string from_beta(std::string_view frame, double& temperature) {
  json::document document;
  const auto type = type_of_event(frame, document);
  const char* const what = type == "session.update" ? "session" : type == "response.create" ? "response" : nullptr;
  if (what == nullptr || document.outcome != json::verdict::good) return std::string(frame);
  // The items of a response are the same in both: they stay as they are.
  const auto input = json::member(json::member(json::root(document), what), "input");
  const bool cut_out = type == "response.create" && input.is(json::kind::array);
  const auto items = input.raw();
  std::string rest;
  if (cut_out) {
    const auto begin = static_cast<std::size_t>(items.data() - frame.data());
    rest.append(frame.substr(0, begin)).append("[]").append(frame.substr(begin + items.size()));
    document = json::scan(rest);
  }
  if (document.text.size() > most_rewritten) return std::string(frame);
  auto event = parsed(document);
  if (!event.contains(what) || !event[what].is_object()) return std::string(frame);
  auto& flat = event[what];
  const bool is_session = type == "session.update";
  if (is_session && flat.contains("type")) return std::string(frame); // the GA form is understood as well
  if (is_session && flat.contains("temperature") && flat["temperature"].is_number())
    temperature = std::clamp(flat["temperature"].get<double>(), 0.6, 1.2);
  flat = ga_form(std::move(flat), is_session);
  auto out = written(event);
  if (!cut_out) return out;
  const auto whole = json::scan(out);
  const auto place = json::member(json::member(json::root(whole), what), "input").raw();
  const auto begin = static_cast<std::size_t>(place.data() - out.data());
  return out.replace(begin, place.size(), items);
}

std::optional<std::string> to_beta(std::string frame, double temperature) {
  json::document document;
  const auto type = std::string(type_of_event(frame, document));
  if (type == "conversation.item.done") return std::nullopt;
  const auto renamed =
      std::find_if(beta_types.begin(), beta_types.end(), [&](auto& each) { return each.first == type; });
  const auto root = json::root(document);
  const bool inside = json::member(root, "session").present() || json::member(root, "item").present() ||
                      json::member(root, "response").present();
  if (!inside) {
    if (renamed == beta_types.end()) return frame;
    const auto at = frame.find(type); // it comes first
    return frame.replace(at, type.size(), renamed->second);
  }
  auto event = parsed(document);
  if (event.is_null()) return frame;
  if (renamed != beta_types.end()) event["type"] = renamed->second;
  if (event.contains("session")) event["session"] = beta_session(event["session"], temperature);
  if (event.contains("item")) rename_content(event["item"]);
  if (event.contains("response")) make_beta_response(event["response"], temperature);
  return written(event);
}

} // namespace parley::protocol::openai::beta
