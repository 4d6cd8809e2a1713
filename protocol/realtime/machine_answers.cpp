#include "protocol/codec/client_side.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/realtime/chat_prompt.hpp"
#include "protocol/realtime/machine.hpp"

#include <algorithm>
#include <utility>

// Responses, and the inner sessions that they come from.
namespace parley::protocol::realtime {
namespace {

constexpr std::chrono::milliseconds cancel_race{1000}; ///< a cancel this soon after a response's end is no mistake
constexpr std::size_t history_bytes = 6000;            ///< about 1,500 tokens
constexpr std::size_t preroll_samples = 16'000;        ///< what a duplex session hears of the time before speech began
constexpr std::size_t most_shown = 64;                 ///< of an id that a client wrote
constexpr std::size_t most_waiting = 8;                ///< responses out of band
constexpr std::size_t most_waiting_bytes = 64u << 20;
constexpr std::size_t most_turn_bytes = 128u << 20; ///< as much as a chat message may have by default

answer_end failure(const server_message& said) {
  const auto& code = said.error_code;
  const bool busy =
      code == "queue_full" || code == "worker_busy" || code == "service_unavailable" || code == "worker_connect_failed";
  if (code == "invalid_payload" || code == "missing_field")
    return {answer_end::how::failed, "invalid_value", "invalid_request_error", said.error_message};
  return {answer_end::how::failed, busy ? "server_busy" : "inference_error", "server_error",
          busy ? "" : said.error_message};
}

bool has_call(const std::vector<kept_item>& context, std::string_view call_id) {
  return std::any_of(context.begin(), context.end(), [&](const kept_item& each) {
    return each->kind == item_kind::function_call && each->call_id == call_id;
  });
}

/// The items that a response answers: the conversation's, or those that its request has, which are taken from it. A result
/// belongs to a call before it, or in the conversation.
result<std::vector<kept_item>> take_context(response_request& request, item_list& conversation) {
  if (!request.input) return conversation.snapshot();
  std::vector<kept_item> context;
  for (auto& each : *request.input) {
    if (auto* const reference = std::get_if<std::string>(&each)) {
      context.push_back(conversation.share(*reference));
      if (context.back() == nullptr)
        return refuse("invalid_value", "There is no item with id '" + reference->substr(0, most_shown) + "'.",
                      "response.input");
      continue;
    }
    auto& one = std::get<item>(each);
    if (one.kind == item_kind::function_call_output && !has_call(context, one.call_id) &&
        !conversation.has_call(one.call_id))
      return tl::unexpected(
          unknown_call(one.call_id, "response.input[" + std::to_string(context.size()) + "].call_id"));
    context.push_back(std::make_shared<const item>(std::move(one)));
  }
  request.input.reset();
  return context;
}

} // namespace

// ---- responses

std::optional<fault> machine::create(response_request request) {
  auto context = take_context(request, items_);
  if (!context) return context.error();
  auto turn = std::make_shared<const chat_turn>(request, std::move(*context), terms_.voices, request.voice);
  if (const auto& why = turn->excess()) return invalid_value("response.input", "it has " + *why + ".").value();
  auto bytes = turn->bytes();
  if (bytes > most_turn_bytes)
    return invalid_value("response.input", "its items are more than 128 MiB together.").value();
  for (const auto& each : waiting_) bytes += each->turn->bytes();
  if (waiting_.size() >= most_waiting || (!waiting_.empty() && bytes > most_waiting_bytes))
    return fault{"rate_limit_exceeded", "Too many responses are waiting.", "", "rate_limit_error"};
  auto* items = request.in_conversation ? &items_ : nullptr;
  auto next =
      std::make_unique<running>(answer(out_, items, conversation_id_, std::move(request)), mode::chat, std::move(turn));
  next->said.create();
  note_it(note::what::side_turn);
  items != nullptr ? waiting_.push_front(std::move(next)) : waiting_.push_back(std::move(next));
  return std::nullopt;
}

/// The conversation's own response, active or waiting.
machine::running* machine::in_conversation() {
  if (is_active() && active_->said.in_conversation()) return active_.get();
  const auto found =
      std::find_if(waiting_.begin(), waiting_.end(), [](const auto& each) { return each->said.in_conversation(); });
  return found == waiting_.end() ? nullptr : found->get();
}

/// Of all responses that have not ended; null if there is none with this id.
machine::running* machine::find_response(std::string_view id) {
  for (auto* each : {active_.get(), beside_.get()})
    if (each != nullptr && each->said.id() == id) return each;
  const auto found =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& each) { return each->said.id() == id; });
  return found == waiting_.end() ? nullptr : found->get();
}

/// For which the inner chat session is there, if there is one.
machine::running* machine::in_chat() {
  return beside_ ? beside_.get() : active_.get();
}

/// The answer to a turn that the user has finished.
void machine::answer_turn() {
  answer_due_ = false;
  if (const auto why = create(default_response(config_))) out_.error(*why, "");
}

/// Asks for a session for the response whose turn it is.
void machine::launch_next() {
  if (!is_active() && !waiting_.empty() && !draining_) {
    active_ = std::move(waiting_.front());
    waiting_.pop_front();
  }
  if (inner_.number != 0) return;
  const bool plays = is_active() && !active_->is_duplex() && active_->ends;
  if (plays && !beside_ && !draining_ && !waiting_.empty() && !waiting_.front()->said.in_conversation()) {
    beside_ = std::move(waiting_.front());
    waiting_.pop_front();
  }
  if (beside_) return begin_chat(*beside_);
  if (!is_active() || active_->is_duplex() || plays) return;
  active_->paced = active_->said.in_conversation() && config_.turns.type != turn_detection::kind::none &&
                   config_.turns.interrupt_response;
  begin_chat(*active_);
}

/// Opens the session that `asks` needs, now or when it may be.
void machine::begin_chat(running& asks) {
  if (terms_.may_start && !terms_.may_start(now_)) {
    const auto used = asks.used;
    finish(asks, {answer_end::how::failed, "rate_limit_exceeded", "rate_limit_error"}, used);
    return launch_next();
  }
  if (!may_open()) return;
  open(mode::chat);
  send_inner(R"({"type":"session.init","payload":{}})");
}

/// Ends a response that the client or its user does not want any more.
void machine::cut(running& which, const std::string& reason) {
  const answer_end how{answer_end::how::cancelled, reason};
  if (&which == active_.get() || &which == beside_.get()) return stop(which, how);
  which.said.finish(how, {});
  std::erase_if(waiting_, [&](const auto& each) { return each.get() == &which; });
}

/// Ends one that has begun, wherever it comes from.
void machine::stop(running& which, const answer_end& how) {
  if (which.is_duplex()) {
    engine_response_cut_ = std::exchange(engine_response_, {});
    feed_.force_listen();
  } else if (in_chat() == &which) {
    close_inner(which.turn != nullptr);
  }
  const auto used = which.used;
  finish(which, how, used);
}

time_point machine::running::due(std::chrono::milliseconds lead) const {
  const auto played = std::chrono::milliseconds(static_cast<std::int64_t>(said.sound_ms()));
  return plays_since.value_or(time_point::min() + lead) + played - lead;
}

/// Sends the sound that is due, and then the end.
void machine::release_sound() {
  if (beside_) release_sound(*beside_);
  if (is_active() && !active_->is_duplex()) release_sound(*active_);
}

void machine::release_sound(running& now_said) {
  while (!now_said.held.empty() && (!now_said.paced || now_ >= now_said.due(terms_.lead))) {
    if (!now_said.plays_since) now_said.plays_since = now_;
    now_said.said.sound(now_said.held.front());
    now_said.held.pop_front();
  }
  if (!now_said.ends || !now_said.held.empty() || (now_said.paced && now_ < now_said.due(terms_.lead))) return;
  const auto how = *now_said.ends;
  const auto used = now_said.used;
  finish(now_said, how, used);
}

std::optional<time_point> machine::release_due() const {
  if (!is_active() || !active_->paced || (active_->held.empty() && !active_->ends)) return std::nullopt;
  return active_->due(terms_.lead);
}

void machine::finish(running& which, const answer_end& how, const usage& used) {
  which.said.finish(how, used);
  if (how.status == answer_end::how::failed) note_it(note::what::error, how.reason);
  if (which.is_duplex()) last_speech_ = now_;
  // Nor is one while the client may still be playing it.
  forgives_cancel_until_ = now_ + cancel_race;
  if (which.plays_since) forgives_cancel_until_ = std::max(*forgives_cancel_until_, which.due({}));
  (beside_.get() == &which ? beside_ : active_).reset();
}

// ---- inner sessions

/// Counts a session that is to be opened now; or it has to wait.
bool machine::may_open() {
  opens_at_ = budget_.open_session(now_);
  return !opens_at_;
}

void machine::open(mode kind) {
  inner_ = {++last_inner_, kind, now_ + terms_.slot_wait};
  inner_effects_.emplace_back(open_inner{inner_.number, kind});
}

void machine::send_inner(std::string frame) {
  inner_effects_.emplace_back(to_inner{inner_.number, std::move(frame)});
}

/// `unused`: it did not get what it was opened for, because the client changed its mind.
void machine::close_inner(bool unused) {
  if (inner_.number == 0) return;
  send_inner(encode_close("user_stop"));
  inner_effects_.emplace_back(drop_inner{inner_.number, unused});
  inner_ = {};
  engine_response_.clear();
}

effects machine::on_inner_frame(std::uint64_t number, std::string_view frame, time_point now) {
  now_ = now;
  if (ended_ || number != inner_.number) return {};
  if (auto said = read_server_message(frame)) {
    if (said->type == server_event_type::created) {
      if (inner_.ready()) return {}; // a session begins once
      inner_.give_up.reset();
    }
    inner_.kind == mode::chat ? on_chat(*said) : on_duplex(*said);
  }
  settle();
  return take();
}

effects machine::on_inner_closed(std::uint64_t number, time_point now) {
  now_ = now;
  if (ended_ || number != inner_.number) return {};
  lose_inner({answer_end::how::failed, "server_error"});
  settle();
  return take();
}

/// The inner session is of no use any more, and the answer that came from it fails.
void machine::lose_inner(const answer_end& how) {
  const auto lost = inner_;
  close_inner();
  duplex_refused_ = lost.kind != mode::chat && !lost.ready();
  auto* const which = in_chat();
  if (which == nullptr || which->kind != lost.kind || (which->ends && !beside_)) return;
  const auto used = which->used;
  finish(*which, how, used);
}

void machine::on_chat(server_message& said) {
  if (in_chat() == nullptr) return;
  auto& answers = *in_chat();
  switch (said.type) {
  case server_event_type::created:
    inner_effects_.emplace_back(turn_to_inner{inner_.number, std::exchange(answers.turn, nullptr)});
    break;
  case server_event_type::spoken:
    if (!said.text.empty()) answers.said.say(said.text);
    if (!said.audio.empty()) answers.held.push_back(std::move(said.audio));
    break;
  case server_event_type::tool_call:
    note_it(note::what::tool_call);
    answers.said.call(said.call);
    break;
  case server_event_type::tool_call_delta: answers.said.call_part(said.call); break;
  case server_event_type::response_done:
    close_inner();
    answers.used = said.used;
    answers.ends = said.reason == "length"  ? answer_end{answer_end::how::incomplete, "max_output_tokens"}
                   : said.reason == "error" ? answer_end{answer_end::how::failed, "inference_error"}
                                            : answer_end{};
    duplex_stale_ = duplex_stale_ || answers.said.in_conversation();
    break;
  case server_event_type::error: lose_inner(failure(said)); break;
  case server_event_type::closed: lose_inner({answer_end::how::failed, "server_error"}); break;
  default: break;
  }
}

// ---- the duplex lane

std::string machine::duplex_init() const {
  std::string prompt = config_.instructions;
  if (const auto history = in_words(items_, history_bytes); !history.empty())
    prompt += (prompt.empty() ? "" : "\n\n") + ("Conversation so far:\n" + history);
  std::string out = R"({"type":"session.init","payload":{)";
  if (const auto voice = voice_named(terms_.voices.get(), config_.voice); config_.audible && !voice.empty())
    out.append(R"("voice":{"ref_audio_base64":")").append(voice) += R"("},)";
  if (!prompt.empty()) {
    out += R"("system_prompt":)";
    json::append_string(prompt, out);
    out += ',';
  }
  out += R"("config":{"force_listen_count":0)";
  if (!config_.audible) out += R"(,"generate_audio":false)";
  return out + "}}}";
}

void machine::on_duplex(const server_message& said) {
  switch (said.type) {
  case server_event_type::listen:
    if (said.answers_unit) feed_.answered();
    if (is_active() && active_->is_duplex() && !engine_response_.empty()) end_spoken(said);
    break;
  case server_event_type::spoken:
    if (said.answers_unit) feed_.answered();
    on_duplex_output(said);
    break;
  case server_event_type::error:
    if (!inner_.ready()) {
      lose_inner(failure(said));
    } else { // a unit was lost, and it goes on; but what it was told may be lost, too
      duplex_stale_ = duplex_stale_ || feed_.telling();
    }
    break;
  case server_event_type::closed: lose_inner({answer_end::how::failed, "server_error"}); break;
  default: break;
  }
}

void machine::end_spoken(const server_message& said) {
  active_->used += said.used;
  engine_response_.clear();
  const auto used = active_->used;
  finish(*active_, {}, used);
}

void machine::on_duplex_output(const server_message& said) {
  if (said.response_id == engine_response_cut_) return;
  const bool empty = said.text.empty() && said.audio.empty();
  if (!is_active()) {
    if (empty || (said.end_of_turn && said.text.empty())) return;
    // The model has heard enough, whatever the VAD thinks.
    if (input_.in_turn()) {
      const auto ended = input_.now_ms();
      end_turn(ended);
    }
    active_ = std::make_unique<running>(answer(out_, &items_, conversation_id_, default_response(config_)), inner_.kind,
                                        nullptr);
    active_->said.create();
    asked_at_.reset();
  }
  engine_response_ = said.response_id;
  if (!said.text.empty()) active_->said.say(said.text);
  if (!said.audio.empty()) active_->said.sound(said.audio);
  if (said.end_of_turn) return end_spoken(said);
  active_->used += said.used;
  const auto most = active_->said.request().max_output_tokens;
  if (most > 0 && said.answers_unit && active_->used.output_text >= most)
    stop(*active_, {answer_end::how::incomplete, "max_output_tokens"});
}

/// Something new in the conversation. A session that is yet to be opened learns it from its prompt.
void machine::tell_duplex(text_message news) {
  if (inner_.number == 0 || inner_.kind == mode::chat) return;
  if (!feed_.tell(news.from, std::move(news.text))) duplex_stale_ = true;
}

/// Sends what the duplex session may hear now; opens it when the user speaks.
void machine::feed_duplex() {
  if (inner_.number == 0) {
    if (input_.in_turn() && !is_active() && !beside_ && !duplex_refused_) {
      if (terms_.may_start && !terms_.may_start(now_)) {
        duplex_refused_ = true;
        return;
      }
      if (!may_open()) return;
      open(watches_ ? mode::video : mode::audio);
      send_inner(duplex_init());
      duplex_stale_ = false;
      feed_.begin();
    } else if (!input_.in_turn()) {
      feed_.keep_last(preroll_samples);
    }
  }
  if (inner_.number == 0 || inner_.kind == mode::chat || !inner_.ready()) return;
  while (auto frame = feed_.next(is_active() && active_->is_duplex())) send_inner(std::move(*frame));
}

std::optional<time_point> machine::idle_due() const {
  if (inner_.number == 0 || inner_.kind == mode::chat || is_active() || input_.in_turn()) return std::nullopt;
  return last_speech_ + terms_.duplex_idle;
}

/// What can be done between two events.
void machine::settle() {
  if (ended_) return;
  opens_at_.reset();
  release_sound();
  const bool speaking = is_active() && active_->is_duplex();
  if (inner_.number != 0 && inner_.kind != mode::chat && !speaking) {
    const bool wanted = lane_now() == lane::duplex && !is_active() && !beside_ && waiting_.empty();
    const auto idle_at = idle_due();
    const bool idle = idle_at && now_ >= *idle_at;
    const bool stale = duplex_stale_ && !input_.in_turn();
    if (!wanted || idle || stale) close_inner();
  }
  if (answer_due_ && in_conversation() == nullptr) answer_turn();
  launch_next();
  lane_now() == lane::duplex ? feed_duplex() : feed_.keep_last(0);
  if (draining_ && !is_active() && !beside_) {
    out_.error({"session_expired", "The server is shutting down.", "", "server_error"}, "");
    end(1001, "the server is shutting down");
  }
}

} // namespace parley::protocol::realtime
