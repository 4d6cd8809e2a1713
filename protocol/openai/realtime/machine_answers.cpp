#include "protocol/delegation/delegations.hpp"
#include "protocol/guest/heard.hpp"
#include "protocol/openai/realtime/chat_prompt.hpp"
#include "protocol/openai/realtime/machine.hpp"

#include <algorithm>
#include <utility>

// Responses, and the inner sessions that they come from.
namespace parley::protocol::openai::realtime {
namespace {

constexpr std::chrono::milliseconds cancel_race{1000}; ///< a cancel this soon after a response's end is no mistake
constexpr std::size_t history_bytes = 6000;            ///< about 1,500 tokens
constexpr std::size_t preroll_samples = 16'000;        ///< what a duplex session hears of the time before speech began
constexpr std::size_t most_shown = 64;                 ///< of an id that a client wrote
constexpr std::size_t most_waiting = 8;                ///< responses out of band
constexpr std::size_t most_waiting_bytes = 64u << 20;
constexpr std::size_t most_turn_bytes = 128u << 20; ///< as much as a chat message may have by default

answer_end failure(const error_event& said) {
  using enum error_code;
  if (said.code == invalid_payload || said.code == missing_field)
    return {answer_end::how::failed, "invalid_value", "invalid_request_error", said.message};
  const bool busy = said.code == queue_full || said.code == worker_busy || said.code == service_unavailable ||
                    said.code == worker_connect_failed;
  return {answer_end::how::failed, busy ? "server_busy" : "inference_error", "server_error", busy ? "" : said.message};
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
  auto next = std::make_unique<running>(answer(out_, items, conversation_id_, std::move(request), media()), mode::chat,
                                        std::move(turn));
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
  if (inner_.is_open()) return;
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
  open(mode::chat, {});
}

/// Ends a response that the client or its user does not want any more.
void machine::cut(running& which, const std::string& reason) {
  const answer_end how{answer_end::how::cancelled, reason};
  if (&which == active_.get() || &which == beside_.get()) return stop(which, how);
  finish_answer(which.said, how, {});
  std::erase_if(waiting_, [&](const auto& each) { return each.get() == &which; });
}

/// Ends one that has begun, wherever it comes from.
void machine::stop(running& which, const answer_end& how) {
  if (which.is_duplex()) {
    inner_.cut();
  } else if (in_chat() == &which) {
    inner_.close(which.turn != nullptr);
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
  while (!now_said.held.empty() && (!now_said.paced || now_ >= now_said.due(lead()))) {
    if (!now_said.plays_since) now_said.plays_since = now_;
    play(now_said, now_said.held.front());
    now_said.held.pop_front();
  }
  if (!now_said.ends || !now_said.held.empty() || (now_said.paced && now_ < now_said.due(lead()))) return;
  const auto how = *now_said.ends;
  const auto used = now_said.used;
  finish(now_said, how, used);
}

void machine::play(running& which, const pcm& sound) {
  const auto& said = which.said;
  if (said.in_conversation() && said.request().audible && said.sound_ms() == 0) note_moment(turn_moment::what::sound);
  which.said.sound(sound, now_);
}

std::optional<time_point> machine::release_due() const {
  if (!is_active() || !active_->paced || (active_->held.empty() && !active_->ends)) return std::nullopt;
  return active_->due(lead());
}

void machine::finish_answer(answer& which, const answer_end& how, const usage& used) {
  if (which.in_conversation() && which.sound_ms() == 0) note_moment(turn_moment::what::answered);
  which.finish(how, used);
  std::string limits;
  if (const auto left = terms_.tokens_left ? terms_.tokens_left() : std::nullopt) {
    json::object_writer one(limits);
    one.text("name", "tokens");
    one.integer("limit", left->limit);
    one.integer("remaining", left->remaining);
    one.number("reset_seconds", left->reset_seconds, 0);
    one.close();
  }
  out_.event("rate_limits.updated", [&](auto& event) { event.json("rate_limits", "[" + limits + "]"); });
  if (media_) media_->finished(which.id(), now_);
}

void machine::finish(running& which, const answer_end& how, const usage& used) {
  finish_answer(which.said, how, used);
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

void machine::open(mode kind, init_event init) {
  inner_.open(kind, std::move(init), now_ + terms_.slot_wait);
}

effects machine::on_inner_event(std::uint64_t number, const server_event& event, time_point now) {
  now_ = now;
  if (ended_ || !inner_.heeds(number)) return {};
  if (const auto* error = std::get_if<error_event>(&event); error && error->code == error_code::quota_exceeded) {
    run_out(error->message);
    return take();
  }
  if (std::holds_alternative<session_created>(event) && !inner_.begin()) return {};
  if (inner_.is_duplex())
    std::visit([this](const auto& each) { on_duplex(each); }, event);
  else if (auto* const answers = in_chat())
    std::visit([&](const auto& each) { on_chat(*answers, each); }, event);
  settle();
  return take();
}

effects machine::on_inner_closed(std::uint64_t number, time_point now) {
  now_ = now;
  if (ended_ || !inner_.heeds(number)) return {};
  lose_inner({answer_end::how::failed, "server_error"});
  settle();
  return take();
}

/// The client's key may use no more for now, so all ends.
void machine::run_out(const std::string& why) {
  const std::string code(out_of_quota);
  lose_inner({answer_end::how::failed, code, code, why});
  out_.error({code, why, "", code}, "");
  end(1008, code);
}

/// The inner session is of no use any more, and the answer that came from it fails.
void machine::lose_inner(const answer_end& how) {
  duplex_refused_ = inner_.is_duplex() && inner_.waits();
  inner_.close();
  auto* const which = in_chat();
  if (which == nullptr || which->kind != inner_.kind() || (which->ends && !beside_)) return;
  const auto used = which->used;
  finish(*which, how, used);
}

void machine::on_chat(running& answers, const session_created&) {
  inner_.ask(std::exchange(answers.turn, nullptr));
}

void machine::on_chat(running& answers, const output_delta& said) {
  if (const auto words = guest::words_in(said); !words.empty()) answers.said.say(words);
  if (auto sound = guest::sound_in(said)) {
    answers.said.made(sound->size());
    answers.held.push_back(std::move(sound));
  }
}

void machine::on_chat(running& answers, const response_tool_call& event) {
  note_it(note::what::tool_call);
  answers.said.call(event.call);
}

void machine::on_chat(running& answers, const response_tool_call_delta& event) {
  answers.said.call_part(event.part);
}

void machine::on_chat(running& answers, const response_done& event) {
  inner_.close();
  answers.used = event.used.value_or(usage());
  answers.ends = event.reason == "length"  ? answer_end{answer_end::how::incomplete, "max_output_tokens"}
                 : event.reason == "error" ? answer_end{answer_end::how::failed, "inference_error"}
                                           : answer_end{};
  duplex_stale_ = duplex_stale_ || answers.said.in_conversation();
}

void machine::on_chat(running&, const error_event& event) {
  lose_inner(failure(event));
}

void machine::on_chat(running&, const session_closed&) {
  lose_inner({answer_end::how::failed, "server_error"});
}

// ---- the duplex lane

init_event machine::duplex_init() const {
  init_event out;
  out.system_prompt = config_.instructions;
  if (const auto history = in_words(items_, history_bytes); !history.empty())
    out.system_prompt += (out.system_prompt.empty() ? "" : "\n\n") + ("Conversation so far:\n" + history);
  out.has_system_prompt = !out.system_prompt.empty();
  if (config_.audible) out.voice = speech::voice_named(terms_.voices.get(), config_.voice);
  out.config.force_listen_count = 0;
  out.config.generate_audio = config_.audible;
  if (calls_in_duplex_) out.offer.tools = offered_functions(config_.tools);
  return out;
}

void machine::on_duplex(const output_delta& said) {
  if (guest::answers_unit(said)) inner_.answered();
  if (said.kind != output_kind::listen) return on_duplex_output(said);
  if (is_active() && active_->is_duplex() && inner_.speaks()) end_spoken(said);
}

void machine::on_duplex(const error_event& event) {
  if (inner_.waits()) {
    lose_inner(failure(event));
  } else { // a unit was lost, and it goes on; but what it was told may be lost, too
    duplex_stale_ = duplex_stale_ || inner_.telling();
  }
}

void machine::on_duplex(const session_closed&) {
  lose_inner({answer_end::how::failed, "server_error"});
}

/// What must be called is called in chat, and so is what is too much to judge each turn by.
void machine::note_functions() {
  calls_in_duplex_ = terms_.duplex_calls && config_.tools != "[]" && config_.tool_choice == R"("auto")" &&
                     fit_to_judge(offered_functions(config_.tools));
}

/// The conversation wants a function called: a part of what the model says, or a response of its own.
void machine::on_duplex(const duplex_call_done& event) {
  note_it(note::what::tool_call);
  delegated_.push_back(event.call.id);
  if (is_active()) {
    if (active_->is_duplex()) active_->said.call(event.call);
    return;
  }
  answer calls(out_, &items_, conversation_id_, default_response(config_));
  calls.create();
  calls.call(event.call);
  calls.finish({}, {});
}

void machine::on_duplex(const duplex_call_abort& event) {
  std::erase(delegated_, event.call_id);
}

/// Whether the duplex session waits for it, and gets it as the result of its call.
bool machine::tell_result(const item& output) {
  const auto call = std::find(delegated_.begin(), delegated_.end(), output.call_id);
  if (call == delegated_.end() || !inner_.is_duplex() || !inner_.ready()) return false;
  delegated_.erase(call);
  if (output.payload.size() > max_tool_result_bytes) return false;
  inner_.say(tool_result_event{output.call_id, output.payload, false});
  return true;
}

void machine::end_spoken(const output_delta& said) {
  active_->used += said.chunk_usage.value_or(usage());
  inner_.falls_silent();
  const auto used = active_->used;
  finish(*active_, {}, used);
}

void machine::on_duplex_output(const output_delta& said) {
  if (inner_.was_cut(said.response_id)) return;
  const auto words = guest::words_in(said);
  const auto sound = guest::sound_in(said);
  if (!is_active()) {
    const bool empty = words.empty() && !sound;
    if (empty || (said.end_of_turn && words.empty())) return;
    // The model has heard enough, whatever the VAD thinks.
    if (input_.in_turn()) {
      end_turn(input_.now_ms(), input_.silence_ms());
    }
    active_ = std::make_unique<running>(answer(out_, &items_, conversation_id_, default_response(config_), media()),
                                        inner_.kind(), nullptr);
    active_->said.create();
    asked_at_.reset();
  }
  inner_.speaks(said.response_id);
  if (!words.empty()) active_->said.say(words);
  if (sound) play(*active_, sound);
  if (said.end_of_turn) return end_spoken(said);
  active_->used += said.chunk_usage.value_or(usage());
  const auto most = active_->said.request().max_output_tokens;
  if (most > 0 && guest::answers_unit(said) && active_->used.output_text >= most)
    stop(*active_, {answer_end::how::incomplete, "max_output_tokens"});
}

/// Something new in the conversation. A session that is yet to be opened learns it from its prompt.
void machine::tell_duplex(text_message news) {
  if (inner_.is_duplex() && !inner_.tell(news.from, std::move(news.text))) duplex_stale_ = true;
}

/// Sends what the duplex session may hear now; opens it when the user speaks.
void machine::feed_duplex() {
  if (!inner_.is_open()) {
    if (input_.in_turn() && !is_active() && !beside_ && !duplex_refused_) {
      if (terms_.may_start && !terms_.may_start(now_)) {
        duplex_refused_ = true;
        return;
      }
      if (!may_open()) return;
      open(watches_ ? mode::video : mode::audio, duplex_init());
      delegated_.clear();
      duplex_stale_ = false;
    } else if (!input_.in_turn()) {
      inner_.keep_last(preroll_samples);
    }
  }
  if (inner_.is_duplex() && inner_.ready()) inner_.feed(is_active() && active_->is_duplex());
}

std::optional<time_point> machine::idle_due() const {
  if (!inner_.is_duplex() || is_active() || input_.in_turn()) return std::nullopt;
  return last_speech_ + terms_.duplex_idle;
}

/// What can be done between two events.
void machine::settle() {
  if (ended_) return;
  opens_at_.reset();
  release_sound();
  const bool speaking = is_active() && active_->is_duplex();
  if (inner_.is_duplex() && !speaking) {
    const bool wanted = lane_now() == lane::duplex && !is_active() && !beside_ && waiting_.empty();
    const auto idle_at = idle_due();
    const bool idle = idle_at && now_ >= *idle_at;
    const bool stale = duplex_stale_ && !input_.in_turn();
    if (!wanted || idle || stale) inner_.close();
  }
  if (answer_due_ && in_conversation() == nullptr) answer_turn();
  launch_next();
  lane_now() == lane::duplex ? feed_duplex() : inner_.keep_last(0);
  if (draining_ && !is_active() && !beside_) {
    out_.error({"session_expired", "The server is shutting down.", "", "server_error"}, "");
    end(1001, "the server is shutting down");
  }
}

} // namespace parley::protocol::openai::realtime
