#include "protocol/codec/client_side.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/live/machine.hpp"
#include "protocol/realtime/chat_prompt.hpp"

#include <algorithm>
#include <utility>

// The inner sessions: a duplex session, and chat sessions for what the client wants said.
namespace parley::protocol::live {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t history_bytes = 6000;     ///< about 1,500 tokens
constexpr std::size_t preroll_samples = 16'000; ///< what a duplex session hears of the time before it was open
constexpr milliseconds settled_after{250};      ///< no more is added to the context: reopening is worth its price
constexpr milliseconds retry_after{2000};
constexpr milliseconds most_patience{5000}; ///< how long a remark waits for the user to finish

} // namespace

/// Counts a session that is to be opened now; or it has to wait.
bool machine::may_open() {
  const bool may_start = !terms_.may_start || terms_.may_start(now_);
  opens_at_ = may_start ? budget_.open_session(now_) : now_ + retry_after;
  return !opens_at_;
}

void machine::open(mode kind, const std::string& init) {
  inner_ = {++last_inner_, kind, now_ + terms_.slot_wait};
  inner_effects_.emplace_back(realtime::open_inner{inner_.number, kind});
  send_inner(init);
}

void machine::open_duplex() {
  open(mode::audio, duplex_init());
  stale_since_.reset();
  feed_.begin();
}

void machine::send_inner(std::string frame) {
  inner_effects_.emplace_back(realtime::to_inner{inner_.number, std::move(frame)});
}

/// `unused`: it did not get what it was opened for, because the client changed its mind.
void machine::close_inner(bool unused) {
  if (inner_.number == 0) return;
  send_inner(encode_close("user_stop"));
  inner_effects_.emplace_back(realtime::drop_inner{inner_.number, unused});
  inner_ = {};
  engine_response_.clear();
}

std::string machine::duplex_init() const {
  std::string prompt = begun_->config.instructions;
  if (const auto history = realtime::in_words(history_, history_bytes); !history.empty())
    prompt += (prompt.empty() ? "" : "\n\n") + ("Conversation so far:\n" + history);
  std::string out = R"({"type":"session.init","payload":{)";
  // Of the name that the client chose; empty = the server's own.
  const auto voice = realtime::voice_named(terms_.voices.get(), begun_->config.voice_name);
  if (!voice.empty()) out.append(R"("voice":{"ref_audio_base64":")").append(voice) += R"("},)";
  if (!prompt.empty()) {
    out += R"("system_prompt":)";
    json::append_string(prompt, out);
    out += ',';
  }
  return out + R"("config":{"force_listen_count":0}}})";
}

realtime::effects machine::on_inner_frame(std::uint64_t number, std::string_view frame, time_point now) {
  now_ = now;
  if (ended_ || number != inner_.number) return {};
  if (auto said = read_server_message(frame)) {
    if (said->type == server_event_type::created) {
      if (!inner_.give_up) return {}; // a session begins once
      on_created();
    }
    if (said->kv_cache_length) context_tokens_used_ = *said->kv_cache_length;
    inner_.is(mode::chat) ? on_chat(*said) : on_duplex(*said);
  }
  settle();
  return take();
}

realtime::effects machine::on_inner_closed(std::uint64_t number, time_point now) {
  now_ = now;
  if (ended_ || number != inner_.number) return {};
  lose_inner();
  settle();
  return take();
}

void machine::on_created() {
  inner_.give_up.reset();
  if (started_) return;
  started_ = now_;
  next_usage_ = now_ + std::chrono::seconds(60);
  event_id_ = start_event_id_;
  out_.event("session.started", [&](auto& event) {
    if (!event_id_.empty()) event.text("client_event_id", event_id_);
    event.json("session", encode_session(begun_->config, id_, origin_.accepted_unix_s + terms_.longest.count() / 1000));
  });
  inform_of_delegation();
  event_id_.clear();
}

/// The inner session is of no use any more. Before the client was told of it, that is the end.
void machine::lose_inner() {
  const bool waited = inner_.give_up.has_value();
  close_inner();
  if (!started_) {
    event_id_ = start_event_id_;
    refuse_event({"server_busy", "There is no slot for this session.", "", "server_error"});
    return end(1013, "server_busy");
  }
  if (waited || side_turn_)
    inform(waited ? "server_busy" : "inference_error", "The model is not there at the moment; the session goes on.");
  end_side_turn();
  retry_at_ = now_ + retry_after;
}

/// All of it is made; what is left is to play it.
void machine::end_side_turn() {
  begun_->speech.end();
  if (side_turn_) side_turn_->made = true;
}

void machine::on_chat(server_message& said) {
  if (!side_turn_) return;
  switch (said.type) {
  case server_event_type::created:
    inner_effects_.emplace_back(realtime::turn_to_inner{inner_.number, std::exchange(side_turn_->asks, nullptr)});
    break;
  case server_event_type::spoken:
    if (!said.text.empty()) begun_->speech.say(said.text);
    begun_->speech.sound(said.audio, false);
    break;
  case server_event_type::response_done:
    close_inner();
    end_side_turn();
    break;
  case server_event_type::error:
  case server_event_type::closed: lose_inner(); break;
  default: break;
  }
}

void machine::on_duplex(const server_message& said) {
  if (said.answers_unit) feed_.answered();
  switch (said.type) {
  case server_event_type::listen:
    if (!engine_response_.empty()) begun_->speech.end();
    engine_response_.clear();
    break;
  case server_event_type::spoken: {
    if (said.response_id == engine_response_cut_) break;
    const bool empty = said.text.empty() && said.audio.empty();
    if (empty && engine_response_.empty()) break;
    if (!speaking()) begin_speech();
    engine_response_ = said.response_id;
    if (!said.text.empty()) begun_->speech.say(said.text);
    begun_->speech.sound(said.audio, true);
    if (!said.end_of_turn) break;
    begun_->speech.end();
    engine_response_.clear();
    break;
  }
  case server_event_type::error:
    if (inner_.give_up)
      lose_inner();
    else if (feed_.telling()) // a unit was lost, and it goes on; but what it was told may be lost, too
      stale_since_ = now_;
    break;
  case server_event_type::closed: lose_inner(); break;
  default: break;
  }
}

/// The model has heard enough, whatever the voice detector thinks: who speaks from now on interrupts it.
void machine::begin_speech() {
  if (finder_.in_turn()) end_turn();
  finder_.give_up();
  listen_from_now();
}

/// Asks chat to say what the client wants said.
void machine::begin_side_turn() {
  retry_at_.reset();
  close_inner();
  begin_speech();
  realtime::response_request request;
  request.instructions = begun_->config.instructions;
  realtime::item asked;
  asked.content.emplace_back().text =
      "Note from the application, which the user cannot hear. Tell the user, in your own words:\n" +
      remarks_.front().content;
  remarks_.pop_front();
  auto context = history_.snapshot();
  context.push_back(std::make_shared<const realtime::item>(std::move(asked)));
  note_it(realtime::note::what::side_turn);
  side_turn_ = side_turn{std::make_shared<const realtime::chat_turn>(std::move(request), std::move(context),
                                                                     terms_.voices, begun_->config.voice_name)};
  open(mode::chat, R"({"type":"session.init","payload":{}})");
}

std::optional<machine::time_point> machine::remark_due() const {
  if (remarks_.empty() || speaking() || !started_) return std::nullopt;
  const auto& came = remarks_.front().came;
  const auto due = std::max(retry_at_.value_or(came), finder_.in_turn() ? came + most_patience : came);
  return std::max(due, opens_at_.value_or(due));
}

/// When the duplex session is to be opened again.
std::optional<machine::time_point> machine::reopening_due() const {
  if (!started_ || side_turn_) return std::nullopt;
  auto due = retry_at_.value_or(*started_);
  if (inner_.number != 0) {
    if (!stale_since_ || !quiet()) return std::nullopt;
    due = *stale_since_ + settled_after;
  }
  return std::max(due, opens_at_.value_or(due));
}

/// What can be done between two events.
void machine::settle() {
  if (ended_) return;
  if (!begun_) {
    if (draining_) end(1001, "the server is shutting down");
    return;
  }
  release_speech();
  if (side_turn_ && side_turn_->made && !begun_->speech.playing(now_)) {
    side_turn_.reset();
    stale_since_ = now_;
  }
  if (!speaking()) remember_speech();
  if (draining_ && !speaking()) {
    if (started_) return close_session("connection_lost", 1001);
    refuse_event({"server_busy", "The server is shutting down.", "", "server_error"});
    return end(1001, "the server is shutting down");
  }
  if (const auto due = remark_due(); due && now_ >= *due && may_open()) begin_side_turn();
  if (const auto due = reopening_due(); due && now_ >= *due && may_open()) {
    close_inner();
    retry_at_.reset();
    open_duplex();
  }
  if (!inner_.is(mode::audio))
    feed_.keep_last(preroll_samples);
  else if (!inner_.give_up)
    while (auto frame = feed_.next(!engine_response_.empty())) send_inner(std::move(*frame));
}

} // namespace parley::protocol::live
