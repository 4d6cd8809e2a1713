#include "tests/protocol/session_driver.hpp"

#include "protocol/media/pcm.hpp"

namespace parley::protocol::test {

namespace {

template<class... F>
struct overloaded : F... {
  using F::operator()...;
};

std::string chunk(const output_delta& delta) {
  return delta.chunk_index ? "[" + std::to_string(*delta.chunk_index) + "]" : "";
}

std::string word_of(const output_delta& delta) {
  std::string text;
  switch (delta.kind) {
  case output_kind::listen: text = "listen" + chunk(delta); break;
  case output_kind::text: text = "text" + chunk(delta) + "(" + delta.text + ")"; break;
  case output_kind::audio:
    text = "audio" + chunk(delta) + "(" + (delta.text.empty() ? "" : delta.text + ",") +
           std::to_string(delta.audio->size()) + ")";
    break;
  }
  return text + (delta.end_of_turn ? "!" : "");
}

std::string word_of(const server_event& event) {
  return std::visit(
      overloaded{
          [](const session_queued& e) { return "queued:" + std::to_string(e.place.position); },
          [](const session_queue_update& e) { return "update:" + std::to_string(e.place.position); },
          [](const session_queue_done&) { return std::string("queue_done"); },
          [](const session_created&) { return std::string("created"); },
          [](const session_resumed& e) {
            return "resumed:" + std::to_string(e.inputs) + "," + std::to_string(e.resent);
          },
          [](const output_delta& e) { return word_of(e); },
          [](const response_tool_call& e) { return "call:" + e.call.name; },
          [](const response_tool_call_delta& e) { return "part:" + e.part.name + e.part.arguments; },
          [](const duplex_call_begin&) { return std::string("call_begin"); },
          [](const duplex_call_delta&) { return std::string("call_delta"); },
          [](const duplex_call_done& e) { return "call_done:" + e.call.name + "(" + e.call.arguments + ")"; },
          [](const duplex_call_abort& e) { return "call_abort:" + std::string(e.reason); },
          [](const response_done& e) { return "done:" + e.reason + "(" + e.text + ")"; },
          [](const session_go_away& e) { return "go_away:" + e.reason; },
          [](const input_transcript& e) { return "transcript:" + e.text + std::string(e.problem); },
          [](const session_closed& e) { return "closed:" + e.reason; },
          [](const error_event& e) { return "error:" + std::string(traits(e.code).wire); },
      },
      event);
}

} // namespace

std::string word(const effect& what) {
  return std::visit(
      overloaded{
          [](const send& e) { return word_of(e.event); },
          [](const send_again& e) { return "again:" + std::to_string(e.after); },
          [](const close_link& e) { return "close:" + std::to_string(e.code); },
          [](const enqueue& e) { return std::string(e.at_head ? "enqueue:head" : "enqueue"); },
          [](const cancel_ticket&) { return std::string("cancel"); },
          [](const retype& e) { return "retype:" + std::string(name_of(e.kind)); },
          [](const release_worker&) { return std::string("release"); },
          [](const open_engine&) { return std::string("open"); },
          [](const submit_unit& e) { return "unit:" + std::to_string(e.unit) + (e.force_listen ? "!" : ""); },
          [](const cut&) { return std::string("cut"); },
          [](const submit_turn& e) { return "turn:" + std::to_string(e.turn); },
          [](const cancel_turn&) { return std::string("cancel_turn"); },
          [](const restore_session&) { return std::string("restore"); },
          [](const close_engine&) { return std::string("close_engine"); },
          [](const transcribe_turn& e) { return "transcribe:" + std::to_string(e.what.number); },
      },
      what);
}

std::string words(const effects& all) {
  std::string text;
  for (const effect& each : all) text += (text.empty() ? "" : " ") + word(each);
  return text;
}

std::string init_frame(std::string_view payload) {
  return R"({"type":"session.init","payload":)" + std::string(payload) + "}";
}

std::string update_frame(std::string_view session) {
  return R"({"type":"session.update","session":)" + std::string(session) + "}";
}

std::string append_frame(dialect spoken, std::size_t samples, std::string_view extra, float value) {
  const bool legacy = spoken == dialect::legacy;
  std::string text =
      legacy ? R"({"type":"input_audio_buffer.append","audio":")" : R"({"type":"input.append","input":{"audio":")";
  append_samples(std::vector<float>(samples, value), text);
  text += '"';
  text += extra;
  text += legacy ? "}" : "}}";
  return text;
}

std::string chat_frame(std::string_view text, std::string_view extra) {
  return R"({"type":"input.append","input":{"messages":[{"role":"user","content":")" + std::string(text) + R"("}])" +
         std::string(extra) + "}}";
}

std::string close_frame(std::string_view reason) {
  return R"({"type":"session.close","reason":")" + std::string(reason) + R"("})";
}

std::string_view tiny_jpeg_base64() {
  // SOI, SOF0 of 1×1 pixels with one component, EOI.
  return "/9j/wAALCAABAAEBAREA/9k=";
}

usage small_usage() {
  return {1, 10, 0, 1, 0};
}

conversation::step_output listen_report(std::uint64_t unit, int kv) {
  conversation::step_output report;
  report.unit = unit;
  report.used = small_usage();
  report.metrics.kv_cache_length = kv;
  return report;
}

conversation::step_output text_report(std::uint64_t unit, std::string text, bool last, int kv) {
  conversation::step_output report = listen_report(unit, kv);
  report.kind = output_kind::text;
  report.text = std::move(text);
  report.last = last;
  return report;
}

conversation::step_output audio_report(std::uint64_t unit, std::size_t samples, bool first, bool end_of_turn, int kv) {
  conversation::step_output report = listen_report(unit, kv);
  report.kind = output_kind::audio;
  report.audio = std::make_shared<const std::vector<float>>(samples, 0.5F);
  report.first = first;
  report.end_of_turn = end_of_turn;
  return report;
}

conversation::chat_delta said(std::uint64_t turn, std::string text) {
  return {0, turn, std::move(text), nullptr};
}

conversation::chat_done turn_over(std::uint64_t turn, std::string text, conversation::finish_reason reason) {
  return {0, turn, reason, std::move(text), nullptr, small_usage(), {}};
}

conversation::failed failure(std::uint64_t number, conversation::failure_kind kind) {
  return {0, number, kind, "it broke"};
}

/// Unless a test says otherwise, a unit costs what it does with the published model.
static session_limits with_unit(session_limits limits) {
  if (limits.unit == conversation::unit_cost{}) limits.unit = {14, 66, true};
  return limits;
}

driver::driver() : driver(options{}) {}

driver::driver(options with)
    : machine(session_origin{with.mode, "sess_test", "rt_1700000000000", std::nullopt, now}, with_unit(with.limits),
              with.able, [this] { return random(); }) {}

std::string driver::note(effects&& made) {
  last = std::move(made);
  all.insert(all.end(), last.begin(), last.end());
  return words(last);
}

std::string driver::wait(std::chrono::milliseconds span) {
  const time_point end = now + span;
  effects made;
  for (auto due = machine.next_deadline(); due && *due <= end; due = machine.next_deadline()) {
    now = std::max(now, *due);
    for (effect& each : machine.tick(now)) made.push_back(std::move(each));
  }
  now = end;
  return note(std::move(made));
}

driver& driver::to_connected() {
  start();
  grant();
  return *this;
}

driver& driver::to_active(dialect spoken, int prompt_tokens) {
  to_connected();
  frame(spoken == dialect::legacy ? update_frame() : init_frame());
  opened(prompt_tokens);
  return *this;
}

} // namespace parley::protocol::test
