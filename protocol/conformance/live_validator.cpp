#include "protocol/conformance/live_validator.hpp"

#include "protocol/conformance/tables.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace parley::protocol::conformance {
namespace {

using live_json = nlohmann::json;

void live_need(bool holds, const std::string& what, const live_json& event) {
  if (!holds) throw std::runtime_error(what + ": " + event.dump().substr(0, 300));
}

bool live_lists(const live_json& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Has what it must, and nothing that it may not; nothing is null.
void check_members(const live_json& object, const live_json& rule, const live_json& event) {
  for (const auto& name : rule["required"])
    live_need(object.contains(name), "without " + name.get<std::string>(), event);
  for (const auto& [name, value] : object.items()) {
    live_need(!value.is_null(), name + " is null", event);
    live_need(name == "type" || live_lists(rule["required"], name) || live_lists(rule["optional"], name),
              "no client knows " + name, event);
  }
}

} // namespace

std::unique_ptr<event_validator> make_live_validator(std::int64_t most_ahead_ms) {
  return std::make_unique<live_validator>(most_ahead_ms);
}

live_validator::live_validator(std::int64_t most_ahead_ms)
    : rules_(tables("live")), most_ahead_ms_(static_cast<double>(most_ahead_ms)) {}

void live_validator::check(std::string_view frame, std::int64_t at_ms) {
  const auto event = live_json::parse(frame);
  const auto type = event.value("type", "");
  live_need(rules_["events"].contains(type), "unknown event", event);
  check_members(event, rules_["events"][type], event);
  for (const auto& [name, rule] : rules_["members"].items())
    if (event.contains(name)) check_members(event[name], rule, event);
  if (event.contains("event_id"))
    live_need(event_ids_.insert(event["event_id"].get<std::string>()).second, "event_id was used before", event);
  check_order(event, type);
  if (event.contains("start_ms")) check_times(event);
  if (type == "session.output_audio.delta") check_pace(event, at_ms);
}

void live_validator::check_order(const live_json& event, const std::string& type) {
  live_need(!closed_, "something after the end", event);
  live_need(started_ || rules_["first"] == type || rules_["last"] == type || live_lists(rules_["before_first"], type),
            "something before the start", event);
  if (rules_["first"] == type) {
    live_need(!started_, "a second start", event);
    started_ = true;
    const auto& format = event["session"]["audio"]["format"];
    bytes_per_ms_ = format["rate"].get<double>() / 1000 * (format["type"] == "audio/pcm" ? 2 : 1);
    id_ = event["session"]["id"];
  }
  if (started_ && event.contains("session")) live_need(event["session"]["id"] == id_, "another id", event);
  closed_ = rules_["last"] == type;
  if (closed_) live_need(live_lists(rules_["reasons"], event["reason"]), "a reason", event);
}

void live_validator::check_times(const live_json& event) {
  const auto start = event["start_ms"].get<std::int64_t>(), end = event["end_ms"].get<std::int64_t>();
  live_need(start >= 0 && start <= end, "it ends before it starts", event);
  if (event["type"] != "session.output_transcript.delta") return;
  live_need(start > last_start_ms_ || last_start_ms_ == 0, "the words go back in time", event);
  last_start_ms_ = start;
}

/// Nobody can take back what was sent.
void live_validator::check_pace(const live_json& event, std::int64_t at_ms) {
  const auto base64 = event["delta"].get<std::string>();
  const auto padding = std::count(base64.begin(), base64.end(), '=');
  const auto bytes = static_cast<double>(base64.size()) * 3 / 4 - static_cast<double>(padding);
  const auto now = static_cast<double>(at_ms);
  played_until_ms_ = std::max(played_until_ms_, now) + bytes / bytes_per_ms_;
  live_need(played_until_ms_ - now <= most_ahead_ms_, "sound ahead of the clock", event);
}

} // namespace parley::protocol::conformance
