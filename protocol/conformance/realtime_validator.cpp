#include "protocol/conformance/realtime_validator.hpp"

#include "protocol/conformance/tables.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace parley::protocol::conformance {
namespace {

using nlohmann::json;
using names = std::vector<std::string>;

/// Besides `type` and `event_id`, what the strict parsers of clients require; nothing else is ever sent.
const std::map<std::string, names>& fields() {
  static const std::map<std::string, names> all = tables("realtime").at("fields");
  return all;
}

/// What may come next in a response, by what came last. `conversation.item.*` of its item are among them.
const std::map<std::string, names>& next() {
  static const std::map<std::string, names> all = tables("realtime").at("next");
  return all;
}

[[noreturn]] void broken(const std::string& what, const json& event) {
  throw std::runtime_error(what + ": " + event.dump().substr(0, 300));
}

void need(bool holds, const char* what, const json& event) {
  if (!holds) broken(what, event);
}

bool is_one_of(const std::string& what, const names& these) {
  return std::find(these.begin(), these.end(), what) != these.end();
}

void check_session(const json& session) {
  for (const auto* name : {"type", "object", "id", "model", "output_modalities", "instructions", "tools", "tool_choice",
                           "max_output_tokens", "tracing", "prompt", "truncation", "include", "expires_at", "audio"})
    need(session.contains(name), name, session);
  const auto& input = session["audio"]["input"];
  for (const auto* name : {"format", "transcription", "noise_reduction", "turn_detection"})
    need(input.contains(name), name, session);
  need(session["audio"]["output"]["voice"].is_string(), "the voice is a string", session);
  need(session.size() == 15 && input.size() == 4, "a session has these members only", session);
}

void check_usage(const json& usage, const json& event) {
  need(usage["total_tokens"] == usage["input_tokens"].get<int>() + usage["output_tokens"].get<int>(), "usage", event);
  for (const auto* name : {"text_tokens", "audio_tokens", "image_tokens", "cached_tokens"})
    need(usage["input_token_details"][name].is_number(), name, event);
  for (const auto* name : {"text_tokens", "audio_tokens"})
    need(usage["output_token_details"][name].is_number(), name, event);
}

} // namespace

std::unique_ptr<event_validator> make_realtime_validator() {
  return std::make_unique<realtime_validator>();
}

void realtime_validator::check(std::string_view frame, std::int64_t) {
  const auto event = json::parse(frame);
  check_fields(event);
  const auto type = event["type"].get<std::string>();
  check_turn(event, type);
  check_conversation(event, type);
  if (type.starts_with("output_audio_buffer.")) return check_output(event, type);
  need(!calls_ || type != "response.output_audio.delta", "a call hears its sound beside the events", event);
  check_response(event, type);
}

void realtime_validator::check_quiet() const {
  need(responses_.empty(), "a response has not ended", {});
  need(heard_.empty(), "what is heard has not stopped", {});
  need(committed_item_.empty() && added_item_.empty(), "an item has not been told", {});
}

void realtime_validator::check_fields(const json& event) {
  const auto known = fields().find(event.value("type", ""));
  need(known != fields().end(), "unknown event", event);
  need(event.size() == known->second.size() + 2, "more or less fields than the event has", event);
  for (const auto& name : known->second) need(event.contains(name), name.c_str(), event);
  need(event_ids_.insert(event["event_id"].get<std::string>()).second, "event_id was used before", event);
  need(event["event_id"].get<std::string>().size() >= 20, "a short event_id", event);
  if (event.contains("session")) check_session(event["session"]);
  if (event.contains("item")) check_item(event["item"]);
  if (event.contains("part")) need(event["part"].size() == 2, "a part has a type and its words", event);
  if (event["type"] == "error")
    for (const auto* name : {"type", "code", "message", "param", "event_id"})
      need(event["error"].contains(name), name, event);
}

void realtime_validator::check_item(const json& item) {
  for (const auto* name : {"id", "object", "type", "status"}) need(item.contains(name), name, item);
  if (item["type"] == "message") {
    need(item["content"].is_array(), "content is a list", item);
    for (const auto& part : item["content"]) {
      need(!part.contains("audio"), "sound is never echoed", item);
      if (part["type"] == "input_audio") need(part.contains("transcript"), "transcript", item);
      if (item["role"] == "assistant")
        need(part["type"] == "output_audio" || part["type"] == "output_text", "content of an answer", item);
    }
  } else if (item["type"] == "function_call") {
    need(item["arguments"].is_string() && item["call_id"].is_string(), "a call's arguments", item);
  }
}

/// The user's turn: started, stopped, committed and its item, with the same id.
void realtime_validator::check_turn(const json& event, const std::string& type) {
  need(committed_item_.empty() || type == "conversation.item.added", "the item of a commit comes next", event);
  need(added_item_.empty() || type == "conversation.item.done", "a whole item is done at once", event);
  if (type == "input_audio_buffer.speech_started") {
    need(turn_item_.empty(), "a turn begins in a turn", event);
    turn_item_ = event["item_id"];
  } else if (type == "input_audio_buffer.speech_stopped") {
    need(event["item_id"] == turn_item_, "the turn's item", event);
  } else if (type == "input_audio_buffer.committed") {
    need(turn_item_.empty() || event["item_id"] == turn_item_, "the turn's item", event);
    turn_item_.clear();
    committed_item_ = event["item_id"];
  } else if (type == "input_audio_buffer.cleared") {
    turn_item_.clear();
  }
}

/// What a call hears: it starts in a response, and stops after its end, or is cleared.
void realtime_validator::check_output(const json& event, const std::string& type) {
  calls_ = true;
  const auto id = event["response_id"].get<std::string>();
  if (type == "output_audio_buffer.started") {
    need(heard_.empty(), "one response is heard at a time", event);
    const auto found = responses_.find(id);
    need(found == responses_.end() || is_one_of("response.content_part.added", found->second.steps),
         "sound without a part", event);
    heard_ = id;
    return;
  }
  need(heard_ == id, "what has not started", event);
  need(type != "output_audio_buffer.stopped" || responses_.count(id) == 0, "it stops after response.done", event);
  heard_.clear();
}

void realtime_validator::check_conversation(const json& event, const std::string& type) {
  if (type == "conversation.item.added") {
    const auto id = event["item"]["id"].get<std::string>();
    need(committed_item_.empty() || committed_item_ == id, "the committed item", event);
    committed_item_.clear();
    need(items_.insert(id).second, "an item is added once", event);
    need(event["previous_item_id"].is_null() || items_.count(event["previous_item_id"]) > 0, "the item before", event);
    if (event["item"]["status"] == "completed") added_item_ = id;
  } else if (type == "conversation.item.done") {
    need(added_item_.empty() || event["item"]["id"] == added_item_, "the added item", event);
    added_item_.clear();
  } else if (type == "conversation.item.deleted") {
    need(items_.erase(event["item_id"]) == 1, "a known item", event);
  }
}

void realtime_validator::check_response(const json& event, const std::string& type) {
  if (type == "response.created") {
    const auto& shown = event["response"];
    for (const auto* name : {"id", "object", "status", "status_details", "output", "conversation_id",
                             "output_modalities", "max_output_tokens", "audio", "usage", "metadata"})
      need(shown.contains(name), name, event);
    response fresh;
    fresh.steps.push_back(type);
    fresh.in_conversation = !shown["conversation_id"].is_null();
    need(responses_.emplace(shown["id"].get<std::string>(), fresh).second, "a response is created once", event);
    return;
  }
  std::string id = event.value("response_id", "");
  if (type == "response.done") id = event["response"]["id"];
  if (id.empty() && (type == "conversation.item.added" || type == "conversation.item.done")) {
    for (auto& [key, each] : responses_)
      if (event["item"]["id"] == each.item) follow(each, type);
    return;
  }
  if (id.empty()) return;
  const auto found = responses_.find(id);
  need(found != responses_.end(), "a response that is not there", event);
  auto& of = found->second;
  if (type == "response.output_item.added") {
    of.item = event["item"]["id"];
    of.words.clear();
  }
  if (event.contains("item_id")) need(event["item_id"] == of.item, "the response's item", event);
  follow(of, type);
  const auto items = std::ranges::count(of.steps, "response.output_item.added");
  if (event.contains("output_index")) need(event["output_index"] == items - 1, "the item's number", event);
  if (type == "response.output_audio_transcript.delta" || type == "response.output_text.delta")
    of.words += event["delta"].get<std::string>();
  if (type == "response.output_audio_transcript.done") need(event["transcript"] == of.words, "the transcript", event);
  if (type == "response.output_text.done") need(event["text"] == of.words, "the text", event);
  if (type != "response.done") return;
  check_usage(event["response"]["usage"], event);
  const auto& output = event["response"]["output"];
  need(std::ssize(output) == items, "the output", event);
  for (const auto& item : output) {
    check_item(item);
    const bool well = event["response"]["status"] == "completed";
    const bool whole = item["type"] == "function_call" && item["status"] == "completed"; // before the response ended
    need(whole || item["status"] == (well ? "completed" : "incomplete"), "status", event);
  }
  responses_.erase(found);
}

void realtime_validator::follow(response& of, const std::string& type) {
  const auto& last = of.steps.back();
  const bool told = !of.in_conversation || last == "conversation.item.added" || last == "conversation.item.done" ||
                    (last != "response.output_item.added" && last != "response.content_part.done") ||
                    type.starts_with("conversation.item.");
  const auto after = next().find(last);
  if (after == next().end() || !is_one_of(type, after->second) || !told)
    throw std::runtime_error(type + " after " + last);
  of.steps.push_back(type);
}

} // namespace parley::protocol::conformance
