#include "tests/protocol/realtime_driver.hpp"

#include "protocol/codec/event_writer.hpp"
#include "protocol/speech/sound.hpp"
#include "tests/protocol/server_events.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>

namespace parley::tests {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
namespace openai = protocol::openai;
namespace speech = protocol::speech;
namespace rt = protocol::openai::realtime;

rt::origin origin_at(std::chrono::steady_clock::time_point now, bool served, bool call) {
  return {"parley", served, now, 1'700'000'000, "", call};
}

protocol::usage some_usage() {
  protocol::usage used;
  used.input_text = 7;
  used.input_audio = 10;
  used.output_text = 3;
  used.output_audio = 25;
  return used;
}

protocol::pcm sound(double seconds) {
  return std::make_shared<std::vector<float>>(static_cast<std::size_t>(seconds * speech::model_output_rate), 0.1f);
}

} // namespace

realtime_driver::realtime_driver(bool served, std::uint64_t seed, rt::machine_terms terms, bool call)
    : machine_(origin_at(now_, served, call), std::move(terms),
               [random = std::make_shared<std::mt19937_64>(seed)] { return (*random)(); }) {
  carry_out(machine_.start(now_));
}

std::vector<json> realtime_driver::send(const json& event) {
  return send_text(event.dump());
}

std::vector<json> realtime_driver::send_text(std::string_view frame) {
  return carry_out(machine_.on_frame(frame, now_));
}

std::vector<json> realtime_driver::update(json session) {
  session["type"] = "realtime";
  return send({{"type", "session.update"}, {"session", std::move(session)}});
}

std::vector<json> realtime_driver::hear(std::span<const float> samples) {
  std::vector<json> all;
  const auto add = [&](std::vector<json> more) { all.insert(all.end(), more.begin(), more.end()); };
  speech::sound_encoder encoder(speech::sound_format{});
  while (!samples.empty()) {
    const auto piece = samples.first(std::min<std::size_t>(samples.size(), speech::model_output_rate / 10));
    samples = samples.subspan(piece.size());
    add(send({{"type", "input_audio_buffer.append"}, {"audio", encoder.feed(piece)}}));
    add(wait(milliseconds(100)));
  }
  return all;
}

std::vector<json> realtime_driver::hear_call(std::span<const float> samples) {
  std::vector<json> all;
  const auto add = [&](std::vector<json> more) { all.insert(all.end(), more.begin(), more.end()); };
  constexpr std::size_t piece_samples = speech::model_output_rate / 25;
  for (; samples.size() >= piece_samples; samples = samples.subspan(piece_samples)) {
    std::vector<float> piece;
    for (std::size_t i = 0; i < piece_samples; i += 3) { // two of three: a tone stays a tone
      piece.push_back(samples[i]);
      piece.push_back(samples[i + 1]);
    }
    add(carry_out(machine_.on_sound(piece, now_)));
    add(wait(milliseconds(40)));
  }
  return all;
}

std::vector<json> realtime_driver::wait(milliseconds time) {
  std::vector<json> all;
  const auto until = now_ + time;
  for (;;) {
    const auto due = machine_.next_deadline();
    if (!due || *due > until) break;
    now_ = std::max(now_, *due);
    auto more = carry_out(machine_.tick(now_));
    all.insert(all.end(), more.begin(), more.end());
    if (const auto next = machine_.next_deadline(); next && *next <= now_)
      throw std::runtime_error("a deadline that stays");
  }
  now_ = until;
  return all;
}

std::vector<json> realtime_driver::grant() {
  if (!open_) throw std::runtime_error("no session was asked for");
  protocol::session_created created;
  created.turn_based = *open_ == protocol::mode::chat;
  return inner(created);
}

std::vector<json> realtime_driver::chat_delta(const std::string& text, double seconds) {
  protocol::output_delta delta;
  delta.kind = seconds > 0 ? protocol::output_kind::audio : protocol::output_kind::text;
  delta.text = text;
  if (seconds > 0) delta.audio = sound(seconds);
  return inner(delta);
}

std::vector<json> realtime_driver::chat_done(const std::string& reason) {
  protocol::response_done done;
  done.reason = reason;
  done.used = some_usage();
  return inner(done);
}

std::vector<json> realtime_driver::listens() {
  protocol::output_delta delta;
  delta.kind = protocol::output_kind::listen;
  delta.response_id = "resp_listen";
  delta.measured.wall_clock_ms = 1;
  delta.chunk_usage = some_usage();
  return inner(delta);
}

std::vector<json> realtime_driver::speaks(const std::string& response, const std::string& text, double seconds,
                                          bool end_of_turn) {
  protocol::output_delta words;
  words.kind = protocol::output_kind::text;
  words.text = text;
  words.response_id = response;
  words.chunk_usage = some_usage();
  auto all = inner(words);
  protocol::output_delta voice;
  voice.kind = protocol::output_kind::audio;
  voice.audio = sound(seconds);
  voice.response_id = response;
  voice.end_of_turn = end_of_turn;
  voice.measured.wall_clock_ms = 1;
  auto more = inner(voice);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<json> realtime_driver::inner(const protocol::server_event& event) {
  return carry_out(machine_.on_inner_event(number_, event, now_));
}

std::vector<json> realtime_driver::inner(const std::string& frame) {
  const auto event = event_in(frame);
  if (!event) throw std::runtime_error("no event of a session");
  return inner(*event);
}

std::vector<json> realtime_driver::inner_closes() {
  return carry_out(machine_.on_inner_closed(number_, now_));
}

std::vector<protocol::transcript_request> realtime_driver::unwritten() {
  return std::exchange(unwritten_, {});
}

std::vector<json> realtime_driver::writes(protocol::transcript heard) {
  return carry_out(machine_.on_transcript(heard, now_));
}

std::vector<std::string> realtime_driver::notes() {
  return std::exchange(notes_, {});
}

std::vector<json> realtime_driver::asked() {
  return std::exchange(asked_, {});
}

std::vector<json> realtime_driver::carry_out(openai::effects effects) {
  std::vector<json> events;
  for (const auto& effect : effects) {
    if (ended_) throw std::runtime_error("an effect after the end");
    if (const auto* frame = std::get_if<openai::to_client>(&effect)) {
      seen_.check(frame->frame, 0);
      events.push_back(json::parse(frame->frame));
      events_.push_back(events.back());
    } else if (const auto* played = std::get_if<openai::play_sound>(&effect)) {
      played_ += static_cast<double>(played->sound->size()) / speech::model_output_rate;
    } else if (std::holds_alternative<openai::drop_sound>(effect)) {
      ++dropped_;
    } else if (const auto* opened = std::get_if<protocol::guest::open_session>(&effect)) {
      if (open_) throw std::runtime_error("a second inner session");
      open_ = opened->kind;
      number_ = opened->number;
      ++opened_;
    } else if (const auto* said = std::get_if<protocol::guest::to_session>(&effect)) {
      if (!open_ || said->number != number_) throw std::runtime_error("a frame for no session");
      asked_.push_back(json::parse(protocol::written(said->event)));
    } else if (const auto* turn = std::get_if<protocol::guest::turn_to_session>(&effect)) {
      if (!open_ || turn->number != number_) throw std::runtime_error("a turn for no session");
      asked_.push_back(json::parse(protocol::written(turn->turn->make().value())));
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
  return events;
}

std::vector<std::string> types(const std::vector<json>& events) {
  std::vector<std::string> out;
  for (const auto& each : events) out.push_back(each["type"]);
  return out;
}

json last(const std::vector<json>& events, const std::string& type) {
  for (auto at = events.rbegin(); at != events.rend(); ++at)
    if ((*at)["type"] == type) return *at;
  return nullptr;
}

std::vector<float> tone(double seconds, float amplitude) {
  std::vector<float> out(static_cast<std::size_t>(seconds * speech::model_output_rate));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = amplitude * std::sin(0.05f * static_cast<float>(i));
  return out;
}

std::vector<float> quiet(double seconds) {
  return std::vector<float>(static_cast<std::size_t>(seconds * speech::model_output_rate));
}

} // namespace parley::tests
