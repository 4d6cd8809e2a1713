#include "tests/protocol/transcript.hpp"

#include "protocol/codec/server_codec.hpp"
#include "protocol/media/pcm.hpp"

#include <fstream>
#include <map>
#include <stdexcept>

namespace parley::protocol::test {

namespace {

using nlohmann::json;

constexpr double start_s = 1'700'000'000;

pcm tone(std::size_t samples) {
  return std::make_shared<const std::vector<float>>(samples, 0.25F);
}

usage usage_from(const json& five) {
  return {five.at(0), five.at(1), five.at(2), five.at(3), five.at(4)};
}

conversation::step_metrics metrics_from(const json& given) {
  conversation::step_metrics measured;
  for (const auto& [key, value] : given.items()) {
    if (key == "kv") measured.kv_cache_length = value;
    if (key == "generate_ms") measured.generate_ms = value;
    if (key == "vision_slices") measured.vision_slices = value;
    if (key == "vision_tokens") measured.vision_tokens = value;
  }
  return measured;
}

/// `{"step":N,"text":…}`, `{"step":N,"audio":samples}` or `{"step":N}` for listen.
conversation::step_output step_from(const json& line) {
  conversation::step_output report;
  report.unit = line.at("step");
  if (line.contains("text")) {
    report.kind = output_kind::text;
    report.text = line["text"];
  } else if (line.contains("audio")) {
    report.kind = output_kind::audio;
    report.audio = tone(line["audio"]);
  }
  report.first = line.value("first", true);
  report.last = line.value("last", true);
  report.end_of_turn = line.value("end_of_turn", false);
  if (line.contains("used")) report.used = usage_from(line["used"]);
  report.metrics = metrics_from(line.value("metrics", json::object()));
  return report;
}

conversation::chat_delta turn_from(const json& line) {
  return {0, line.at("turn"), line.value("text", ""), line.contains("audio") ? tone(line["audio"]) : nullptr};
}

conversation::chat_done done_from(const json& line) {
  static const std::map<std::string, conversation::finish_reason> ends{
      {"turn_end", conversation::finish_reason::turn_end},
      {"length", conversation::finish_reason::length},
      {"cancelled", conversation::finish_reason::cancelled}};
  return {0,
          line.at("done"),
          ends.at(line.value("reason", "turn_end")),
          line.at("text"),
          line.contains("audio") ? tone(line["audio"]) : nullptr,
          usage_from(line["used"]),
          metrics_from(line.value("metrics", json::object()))};
}

conversation::failed failure_from(const json& line) {
  static const std::map<std::string, conversation::failure_kind> kinds{
      {"invalid", conversation::failure_kind::invalid},
      {"context_full", conversation::failure_kind::context_full},
      {"inference", conversation::failure_kind::inference}};
  return {0, line.value("number", 0U), kinds.at(line.at("failed")), line.value("message", "it broke")};
}

void engine_speaks(driver& d, const json& line) {
  if (line.contains("opened")) {
    d.note(d.machine.on_engine_opened({0, line["opened"], usage_from(line.at("used"))}, d.now));
  } else if (line.contains("step")) {
    d.step(step_from(line));
  } else if (line.contains("turn")) {
    d.turn(turn_from(line));
  } else if (line.contains("done")) {
    d.done(done_from(line));
  } else if (line.contains("failed")) {
    d.failed(failure_from(line));
  } else if (line.contains("lost")) {
    d.worker_lost();
  } else {
    throw std::runtime_error("engine line: " + line.dump());
  }
}

void queue_speaks(driver& d, const json& line) {
  if (line.contains("granted")) {
    d.grant();
  } else if (line.contains("queued")) {
    d.queued(line["queued"]);
  } else if (line.contains("update")) {
    d.update(line["update"]);
  } else if (line.contains("refused")) {
    for (std::size_t code = 0; code < error_table.size(); ++code)
      if (error_table[code].wire == line["refused"]) d.refused(static_cast<error_code>(code));
  } else {
    throw std::runtime_error("queue line: " + line.dump());
  }
}

void speak(driver& d, json line) {
  const std::string from = line.at("from");
  if (from == "client") {
    if (line.contains("raw")) {
      d.frame(line["raw"].get_ref<const std::string&>());
    } else if (line.contains("gone")) {
      d.gone();
    } else {
      expand(line.at("event"));
      d.frame(line["event"].dump());
    }
  } else if (from == "engine") {
    engine_speaks(d, line);
  } else if (from == "queue") {
    queue_speaks(d, line);
  } else if (from == "clock") {
    d.wait(std::chrono::milliseconds(line.at("ms").get<int>()));
  } else if (from == "house") {
    d.drain();
  } else {
    throw std::runtime_error("unknown party: " + from);
  }
}

/// An engine measures everything, a transcript says what it is about: the other figures are left out of what is said.
void leave_out_unsaid(const json& line, json& event) {
  if (!event.contains("metrics")) return;
  const auto measured = line.value("metrics", json::object());
  for (const char* each : {"prefill_ms", "generate_ms", "cost_llm_ms", "n_tokens"})
    if (!measured.contains(each)) event["metrics"].erase(each);
  if (event["metrics"].value("backend", "") == "libtorch") event["metrics"].erase("backend");
}

/// Collects those of the latest effects that reach the client.
void listen(const driver& d, const json& line, std::vector<json>& heard) {
  const double now_s = start_s + std::chrono::duration<double>(d.now - time_point(1000h)).count();
  for (const effect& each : d.last) {
    if (const auto* said = std::get_if<send>(&each)) {
      const std::string text = encode(said->event, {said->spoken, said->session_id, false, now_s});
      auto event = json::parse(text);
      leave_out_unsaid(line, event);
      heard.push_back({{"from", "server"}, {"event", std::move(event)}});
    } else if (const auto* closed = std::get_if<close_link>(&each)) {
      heard.push_back({{"from", "server"}, {"close", closed->code}});
    }
  }
}

} // namespace

void expand(json& value) {
  if (value.is_structured()) {
    for (json& each : value) expand(each);
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text == "$jpeg") {
      value = tiny_jpeg_base64();
    } else if (text.starts_with("$pcm:")) {
      std::string base64;
      append_samples(*tone(std::stoul(text.substr(5))), base64);
      value = base64;
    }
  }
}

transcript read_transcript(const std::string& path) {
  std::ifstream file(path);
  transcript of;
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error("no transcript: " + path);
  const json head = json::parse(line);
  of.with.mode = head.at("mode").is_null() ? std::nullopt : std::optional(head["mode"].get<std::string>());
  while (std::getline(file, line)) of.lines.push_back(json::parse(line));
  return of;
}

std::vector<json> replay(const transcript& of) {
  driver d(of.with);
  std::vector<json> all;
  d.start();
  listen(d, json::object(), all);
  for (const json& line : of.lines) {
    if (line.at("from") == "server") continue;
    all.push_back(line);
    speak(d, line);
    listen(d, line, all);
  }
  return all;
}

} // namespace parley::protocol::test
