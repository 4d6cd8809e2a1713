#include "tests/protocol/live_driver.hpp"

#include "protocol/codec/event_writer.hpp"
#include "protocol/speech/sound.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>

namespace parley::tests {
namespace {

using events = std::vector<nlohmann::json>;
using std::chrono::milliseconds;
namespace openai = protocol::openai;
namespace speech = protocol::speech;
namespace rt = protocol::openai::realtime;

protocol::pcm live_sound(double seconds) {
  return std::make_shared<std::vector<float>>(static_cast<std::size_t>(seconds * speech::model_output_rate), 0.1f);
}

void append_events(events& to, events more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

} // namespace

live_driver::live_driver(protocol::openai::live::machine_terms terms, std::uint64_t seed)
    : machine_({now_, 1'700'000'000}, terms,
               [random = std::make_shared<std::mt19937_64>(seed)] { return (*random)(); }) {
  carry_out(machine_.start(now_));
}

std::int64_t live_driver::now_ms() const {
  return std::chrono::duration_cast<milliseconds>(now_ - began_).count();
}

events live_driver::send(const nlohmann::json& event) {
  return send_text(event.dump());
}

events live_driver::send_text(std::string_view frame) {
  return carry_out(machine_.on_frame(frame, now_));
}

events live_driver::start(nlohmann::json session) {
  if (!session.contains("model")) session["model"] = "any";
  return send({{"type", "session.start"}, {"event_id", "begin"}, {"session", std::move(session)}});
}

void live_driver::begin(nlohmann::json session) {
  start(std::move(session));
  grant();
}

events live_driver::hear(std::span<const float> samples) {
  events all;
  speech::sound_encoder encoder(speech::sound_format{});
  while (!samples.empty()) {
    const auto piece = samples.first(std::min<std::size_t>(samples.size(), speech::model_output_rate / 10));
    samples = samples.subspan(piece.size());
    append_events(all, send({{"type", "session.input_audio.append"}, {"audio", encoder.feed(piece)}}));
    append_events(all, wait(milliseconds(100)));
  }
  return all;
}

events live_driver::wait(milliseconds time) {
  events all;
  const auto until = now_ + time;
  for (;;) {
    const auto due = machine_.next_deadline();
    if (!due || *due > until) break;
    now_ = std::max(now_, *due);
    append_events(all, carry_out(machine_.tick(now_)));
    if (const auto next = machine_.next_deadline(); next && *next <= now_)
      throw std::runtime_error("a deadline that stays");
  }
  now_ = until;
  return all;
}

events live_driver::drain() {
  return carry_out(machine_.on_drain(now_));
}

events live_driver::grant() {
  if (!open_) throw std::runtime_error("no session was asked for");
  protocol::session_created created;
  created.turn_based = *open_ == protocol::mode::chat;
  return inner(created);
}

events live_driver::listens() {
  protocol::output_delta delta;
  delta.kind = protocol::output_kind::listen;
  delta.response_id = "resp_listen";
  delta.measured.wall_clock_ms = 1;
  return inner(delta);
}

events live_driver::speaks(const std::string& response, const std::string& text, double seconds, bool end_of_turn) {
  protocol::output_delta words;
  words.kind = protocol::output_kind::text;
  words.text = text;
  words.response_id = response;
  auto all = inner(words);
  protocol::output_delta voice;
  voice.kind = protocol::output_kind::audio;
  voice.audio = live_sound(seconds);
  voice.response_id = response;
  voice.end_of_turn = end_of_turn;
  voice.measured.wall_clock_ms = 1;
  append_events(all, inner(voice));
  return all;
}

events live_driver::chat_delta(const std::string& text, double seconds) {
  protocol::output_delta delta;
  delta.kind = seconds > 0 ? protocol::output_kind::audio : protocol::output_kind::text;
  delta.text = text;
  if (seconds > 0) delta.audio = live_sound(seconds);
  return inner(delta);
}

events live_driver::chat_done() {
  protocol::response_done done;
  done.reason = "turn_end";
  return inner(done);
}

events live_driver::inner_error(protocol::error_code code) {
  return inner(protocol::error_event{code, "of the test"});
}

events live_driver::inner_closes() {
  return carry_out(machine_.on_inner_closed(number_, now_));
}

events live_driver::inner(const protocol::server_event& event) {
  return carry_out(machine_.on_inner_event(number_, event, now_));
}

std::vector<protocol::transcript_request> live_driver::unwritten() {
  return std::exchange(unwritten_, {});
}

events live_driver::writes(protocol::transcript heard) {
  return carry_out(machine_.on_transcript(heard, now_));
}

std::vector<std::string> live_driver::notes() {
  return std::exchange(notes_, {});
}

events live_driver::asked() {
  return std::exchange(asked_, {});
}

std::string live_driver::prompt() {
  std::string found;
  for (const auto& frame : asked())
    if (frame["type"] == "session.init") found = frame["payload"].value("system_prompt", "");
  return found;
}

events live_driver::carry_out(openai::effects effects) {
  events out;
  for (const auto& effect : effects) {
    if (ended_) throw std::runtime_error("an effect after the end");
    if (const auto* frame = std::get_if<openai::to_client>(&effect)) {
      validator_.check(frame->frame, now_ms());
      out.push_back(nlohmann::json::parse(frame->frame));
      seen_.push_back({now_ms(), out.back()});
    } else if (const auto* opened = std::get_if<protocol::guest::open_session>(&effect)) {
      if (open_) throw std::runtime_error("a second inner session");
      open_ = opened->kind;
      number_ = opened->number;
      ++opened_;
    } else if (const auto* said = std::get_if<protocol::guest::to_session>(&effect)) {
      if (!open_ || said->number != number_) throw std::runtime_error("a frame for no session");
      asked_.push_back(nlohmann::json::parse(protocol::written(said->event)));
    } else if (const auto* turn = std::get_if<protocol::guest::turn_to_session>(&effect)) {
      if (!open_ || turn->number != number_) throw std::runtime_error("a turn for no session");
      asked_.push_back(nlohmann::json::parse(protocol::written(turn->turn->make().value())));
    } else if (const auto* dropped = std::get_if<protocol::guest::drop_session>(&effect)) {
      if (!open_) throw std::runtime_error("no session to drop");
      unused_ += dropped->unused;
      open_.reset();
    } else if (const auto* wanted = std::get_if<openai::transcribe>(&effect)) {
      unwritten_.push_back(wanted->what);
    } else if (const auto* noted = std::get_if<openai::note>(&effect)) {
      const std::string name(openai::note_words[static_cast<std::size_t>(noted->about)]);
      notes_.push_back(noted->word.empty() ? name : name + " " + noted->word);
    } else {
      ended_ = std::get<openai::end_client>(effect);
    }
  }
  return out;
}

} // namespace parley::tests
