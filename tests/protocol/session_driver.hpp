#pragma once

#include "protocol/session/session_machine.hpp"

#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

// Drives a session machine without threads, sockets or a clock, and writes its effects as short words:
//   queued:2 update:1 queue_done created listen[0] text[1](hi) audio(24000) audio(12000)! error:not_ready
//   go_away:timeout done:turn_end(hi) closed:stopped | close:1000 | enqueue enqueue:head cancel retype:chat release |
//   open unit:0 unit:1! cut turn:1 cancel_turn restore close_engine resumed:INPUTS,RESENT again:AFTER
// [n] is the chunk_index; ! is end_of_turn of an answer, force_listen of a unit.
namespace parley::protocol::test {

using namespace std::chrono_literals;

std::string word(const effect& what);
std::string words(const effects& all);

// ---- client frames

std::string init_frame(std::string_view payload = "{}");
std::string update_frame(std::string_view session = R"({"instructions":"be brief"})");
/// `extra` is JSON that follows the audio, such as `,"force_listen":true`.
std::string append_frame(dialect spoken, std::size_t samples = unit_samples, std::string_view extra = "",
                         float value = 0.25F);
std::string chat_frame(std::string_view text = "hello", std::string_view extra = "");
std::string close_frame(std::string_view reason = "user_stop");

/// The smallest base64 that passes for a JPEG of 1×1 pixels.
std::string_view tiny_jpeg_base64();

// ---- engine reports

usage small_usage();
conversation::step_output listen_report(std::uint64_t unit, int kv = 100);
conversation::step_output text_report(std::uint64_t unit, std::string text, bool last = true, int kv = 100);
conversation::step_output audio_report(std::uint64_t unit, std::size_t samples, bool first = true,
                                       bool end_of_turn = false, int kv = 100);
conversation::chat_delta said(std::uint64_t turn, std::string text);
conversation::chat_done turn_over(std::uint64_t turn, std::string text,
                                  conversation::finish_reason reason = conversation::finish_reason::turn_end);
conversation::failed failure(std::uint64_t number,
                             conversation::failure_kind kind = conversation::failure_kind::inference);

struct driver {
  struct options {
    std::optional<std::string> mode = "audio";
    session_limits limits = {};
    capabilities able = {true, true, true};
  };

  driver();
  explicit driver(options with);

  std::string start() { return note(machine.start(now)); }
  std::string frame(std::string_view text) { return note(machine.on_frame(text, now)); }
  std::string grant() { return note(machine.on_granted(now)); }
  std::string opened(int prompt_tokens = 20) {
    return note(machine.on_engine_opened({0, prompt_tokens, small_usage()}, now));
  }
  std::string failed(conversation::failed why) { return note(machine.on_engine_failed(std::move(why), now)); }
  std::string step(conversation::step_output report) { return note(machine.on_step(std::move(report), now)); }
  std::string turn(conversation::chat_delta report) { return note(machine.on_chat_delta(std::move(report), now)); }
  std::string done(conversation::chat_done report) { return note(machine.on_chat_done(std::move(report), now)); }
  std::string engine_closed() { return note(machine.on_engine_closed(now)); }
  std::string quota_spent() { return note(machine.on_quota_spent("no more today", now)); }
  std::string worker_lost() { return note(machine.on_worker_lost(now)); }
  std::string work_lost_twice() { return note(machine.on_work_lost_twice(now)); }
  std::string restored() { return note(machine.on_restored(now)); }
  std::string refused(error_code code) { return note(machine.on_refused(code, "no", now)); }
  std::string queued(int position) { return note(machine.on_queued({position, 1.5, "ticket_0", position}, now)); }
  std::string update(int position) { return note(machine.on_queue_update({position, 1.5, "ticket_0", position}, now)); }
  std::string taken_up() { return note(machine.on_taken_up(now)); }
  std::string handover() { return note(machine.on_handover(1s, now)); }
  std::string heard(transcript what) { return note(machine.on_transcript(what, now)); }
  std::string drain() { return note(machine.on_drain(now)); }
  std::string gone() { return note(machine.on_gone(now)); }
  /// A refusal becomes `refused:` and the error's code.
  std::string resume(const resume_claim& claim, std::uint64_t oldest_kept = 1) {
    auto made = machine.on_resume(claim, oldest_kept, now);
    return made ? note(*std::move(made)) : "refused:" + std::string(traits(made.error().code).wire);
  }
  std::string binary() { return note(machine.on_binary(now)); }

  std::string append(std::size_t samples = unit_samples, std::string_view extra = "") {
    return frame(append_frame(machine.spoken(), samples, extra));
  }

  /// Moves the clock; each deadline on the way expires at its own time.
  std::string wait(std::chrono::milliseconds span);

  /// Continue to CONNECTED or ACTIVE. In chat, `spoken` must be current.
  driver& to_connected();
  driver& to_active(dialect spoken = dialect::current, int prompt_tokens = 20);

  std::string note(effects&& made);

  std::mt19937_64 random{7};
  time_point now = time_point(1000h);
  session_machine machine;
  effects last; ///< from the latest call
  effects all;  ///< from the beginning
};

/// The nth delta (or other event) that the latest call sent.
template<class Event>
const Event& said_event(const effects& made, std::size_t nth = 0) {
  for (const effect& each : made)
    if (const auto* sent = std::get_if<send>(&each))
      if (const auto* event = std::get_if<Event>(&sent->event))
        if (nth-- == 0) return *event;
  throw std::runtime_error("no such event");
}

/// The duplex session that the latest call opened last.
inline const conversation::open_duplex& opened_duplex(const driver& d) {
  return std::get<conversation::open_duplex>(std::get<open_engine>(d.last.back()).order);
}

/// The nth delta that the latest call sent.
inline const output_delta& delta(const driver& d, std::size_t nth = 0) {
  return said_event<output_delta>(d.last, nth);
}

} // namespace parley::protocol::test
