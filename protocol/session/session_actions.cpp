#include "base/assert.hpp"
#include "protocol/json/field_reader.hpp"
#include "protocol/media/base64.hpp"
#include "protocol/session/engine_words.hpp"
#include "protocol/session/session_machine.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

// The actions in the cells of the session table.
namespace parley::protocol {

namespace {

constexpr std::size_t max_told_bytes = max_tool_result_bytes + (2u << 10); ///< a result with its call
constexpr std::size_t max_unjudged_turns = 2;                              ///< behind each other

/// How long before a limit the client is warned (docs/protocol.md 8).
session_limits::milliseconds go_away_lead(session_limits::milliseconds limit) {
  return limit <= std::chrono::seconds(60) ? std::chrono::seconds(10) : std::chrono::seconds(30);
}

std::int64_t milliseconds_until(time_point when, time_point now) {
  return std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(when - now).count());
}

bool shows_something(const chat_append_event& event) {
  for (const message& each : event.messages)
    for (const content_item& item : each.content)
      if (std::holds_alternative<image_item>(item) || std::holds_alternative<video_item>(item)) return true;
  return false;
}

/// About what a chat's append would take up on the wire.
std::size_t bytes_of(const result<client_event>& event) {
  const auto* const turn = event ? std::get_if<chat_append_event>(&*event) : nullptr;
  if (turn == nullptr) return 0;
  const auto of_sound = [](const pcm& sound) { return sound ? sound->size() * sizeof(float) : 0; };
  const auto of_file = [](const image_file& file) { return file ? file->size() : 0; };
  std::size_t media = 0, text = 0;
  for (const message& each : turn->messages) {
    for (const auto& call : each.calls) text += call.name.size() + call.arguments.size();
    for (const content_item& item : each.content) {
      if (const auto* const words = std::get_if<text_item>(&item)) text += words->text.size();
      if (const auto* const audio = std::get_if<audio_item>(&item)) media += of_sound(audio->samples);
      if (const auto* const image = std::get_if<image_item>(&item)) media += of_file(image->file);
      if (const auto* const video = std::get_if<video_item>(&item)) {
        media += of_sound(video->samples);
        for (const auto& file : video->frames) media += of_file(file);
      }
    }
  }
  return text + base64::encoded_size(media);
}

bool sounds(const chat_append_event& event) {
  for (const message& each : event.messages)
    for (const content_item& item : each.content)
      if (std::holds_alternative<audio_item>(item)) return true;
  return false;
}

} // namespace

// ---- up to session.created

void session_machine::connect(time_point now) {
  holding_ = holding::slot;
  if (!told_to_begin_ || told_to_wait_) {
    say(session_queue_done{});
    told_to_begin_ = true;
    told_to_wait_ = false;
    init_deadline_ = now + limits_.init;
  }
  if (init_) return begin_init();
  back_to_connected();
}

void session_machine::back_to_connected() {
  state_ = session_state::connected;
  holding_ = holding::slot;
  init_.reset();
  clocks_.set(session_clock::init_wait, init_deadline_);
}

namespace {

/// Decodes an event with what its connection may have of checking schemas: taken before, and what is left comes back.
template<class Decode>
auto within_steps(base::token_bucket& steps, time_point now, Decode decode) {
  constexpr double most = field_reader::most_schema_work;
  const double lent = std::min(most, std::floor(steps.left(now)));
  steps.take(lent, now);
  auto work = static_cast<std::int64_t>(lent);
  auto out = decode(&work);
  steps.give_back(static_cast<double>(std::max<std::int64_t>(0, work)), now);
  if (!out && work <= 0 && work < static_cast<std::int64_t>(lent) && lent < most)
    out.error().message = "strict schemas come faster than they can be checked";
  return out;
}

} // namespace

void session_machine::read_init(const occurrence& what) {
  const auto now = what.now;
  // Another init while one waits is allowed, but who repeats it without end is no better than who errs.
  if (init_ && flood_.count(now)) return hang_up(hang_up_cause::too_many_errors);
  const auto read = [&]() -> result<init_event> {
    if (what.event)
      return what.its<init_event>("payload").and_then(
          [&](init_event&& event) { return checked(std::move(event), mode_); });
    const auto& frame = what.its_frame();
    if (frame.type != client_event_type::session_init) return decode_session_update(frame, mode_);
    return within_steps(schema_steps_, now, [&](std::int64_t* work) {
      return decode_session_init(frame, url_mode_, work, limits_.knows_functions);
    });
  };
  auto init = read();
  if (!init) return reject(std::move(init.error()), now);
  if (!url_mode_) choose_mode(init->turn_based.value_or(false) ? mode::chat : mode::video);
  auto& config = init->config;
  config.generate_audio &= able_.speaks;
  if (!limits_.allow_client_window && config.window && *config.window != limits_.window)
    init->refused.push_back({"config.sliding_window_mode", "the server chooses it"});
  if (!limits_.allow_client_window || !config.window) config.window = limits_.window;
  init_ = std::make_shared<const init_event>(std::move(*init));
  if (state_ == session_state::connected) begin_init();
}

void session_machine::begin_init() {
  PARLEY_ASSERT(init_ && holding_ == holding::slot, "what is opened has an init and a slot");
  spoken_ = init_->spoken;
  state_ = session_state::initializing;
  holding_ = holding::engine;
  clocks_.stop(session_clock::init_wait);
  writer().order(open_engine{mode_, opening(mode_, *init_)});
}

void session_machine::begin_talk(const conversation::opened& opened, time_point now) {
  PARLEY_ASSERT(init_ && holding_ == holding::engine && !chat_ && !duplex_, "a session begins to talk once");
  state_ = session_state::active;
  created_ = true;
  session_created created;
  created.session_id = id();
  created.turn_based = mode_ == mode::chat;
  created.recording_id = origin_.recording_id;
  if (init_->resume && limits_.resume.count() > 0) {
    resume_token_.emplace(tokens_());
    created.resume_token = resume_token_->token();
    created.resume_seconds = std::chrono::duration<double>(limits_.resume).count();
  }
  if (mode_ == mode::chat) {
    chat_ = std::make_unique<chat_flow>(init_, random_);
  } else {
    duplex_ = std::make_unique<duplex_flow>(limits_, init_, opened, random_);
    begin_delegation();
    if (init_->transcribe_input || offer_) user_.emplace();
    created.prompt_length = opened.prompt_tokens;
    created.measured.kv_cache_length = opened.prompt_tokens;
  }
  created.total = total();
  if (limits_.knows_functions) note_wishes(created);
  say(std::move(created));
  idle_since_ = now;
  const time_point warning = time_limit_ - go_away_lead(duration_limit(limits_, mode_));
  if (warning <= now) {
    warn_of_time(now);
  } else {
    clocks_.set(session_clock::go_away, warning);
  }
}

void session_machine::fail_init(const conversation::failed& failure) {
  say(error_event{error_code::inference_error, failure.message});
  back_to_connected();
  if (++failed_inits_ >= max_failed_inits) end(close_cause::backend);
}

// ---- input

void session_machine::take_append(const occurrence& what) {
  if (chat_) {
    take_turn(what);
  } else {
    take_units(what);
  }
}

/// An append without a name from its client is named by its arrival number (docs/protocol.md 4).
void session_machine::name_input(std::string& input_id) const {
  if (input_id.empty()) input_id = "input_" + std::to_string(inputs_);
}

void session_machine::take_units(const occurrence& what) {
  const auto now = what.now;
  auto event = what.event ? what.its<append_event>("input.audio").and_then([&](append_event&& given) {
    return checked(std::move(given), mode_);
  })
                          : decode_append(what.its_frame(), mode_, limits_.min_legacy_samples);
  if (!event) return reject(std::move(event.error()), now);
  if (!able_.sees && !event->frames.empty()) {
    return reject({error_code::invalid_payload, "video_frames: this server's model does not see"}, now);
  }
  if (!its_duplex().has_room(event->context))
    return reject({error_code::invalid_payload, "context: too much of it waits for the next second of sound"}, now);
  took_input_ = true;
  name_input(event->input_id);
  if (user_ && event->samples) listen_to_user(event->samples); // an append of context alone has none
  if (event->samples) tell_results(event->context, now);
  auto out = writer();
  follow(its_duplex().on_append(std::move(*event), inputs_, now, out));
}

void session_machine::listen_to_user(const pcm& samples) {
  PARLEY_ASSERT(user_ && samples, "its client wants to know what the user says");
  for (auto& turn : user_->hear(*samples)) {
    if (offer_) judge_turn(turn);
    if (!init_->transcribe_input) continue;
    unwritten_.push_back({++last_turn_, turn.start_ms, turn.end_ms});
    writer().order(transcribe_turn{{last_turn_, std::move(turn.sound)}});
  }
}

// ---- functions that the conversation calls (docs/protocol.md 17)

/// From here on turns of the user are judged, if functions are offered and may be called.
void session_machine::begin_delegation() {
  if (init_->offer.tools.empty() || !why_no_tools().empty()) return;
  auto offer = std::make_shared<conversation::turn_request>();
  if (init_->has_system_prompt && !init_->system_prompt.empty())
    offer->messages.push_back(message{role::system, {text_item{init_->system_prompt}}});
  offer->tools = init_->offer.tools;
  offer_ = std::move(offer);
}

/// Why the functions that the client offers are not called; empty = they are.
std::string_view session_machine::why_no_tools() const {
  if (limits_.delegations == 0) return "this server calls no functions in audio and video";
  if (!able_.hears) return "this server's model does not hear";
  if (!fit_to_judge(init_->offer.tools)) return "in audio and video they may have 16 KiB together";
  return {};
}

/// What of the init's wishes is granted, and what is not.
void session_machine::note_wishes(session_created& to) const {
  const auto grant = [&](std::string_view field, bool wished, std::string_view why_not) {
    if (!wished) return;
    if (why_not.empty())
      to.granted.emplace_back(field);
    else
      to.refused.push_back({std::string(field), std::string(why_not)});
  };
  const auto unless = [](bool granted, std::string_view why_not) { return granted ? std::string_view() : why_not; };
  to.refused = init_->refused;
  grant("resume", init_->resume,
        unless(limits_.resume.count() > 0, "this server keeps no sessions for clients that are away"));
  if (mode_ == mode::chat) return grant("tools", !init_->offer.tools.empty(), {});
  grant("tools", !init_->offer.tools.empty(), why_no_tools());
  grant("tool_choice", init_->offer.tool_required,
        "a conversation calls a function when its user asks for something: auto");
  grant("config.transcribe_input", init_->transcribe_input,
        unless(limits_.transcribes && able_.hears, "this server writes down nothing that users say"));
  grant("config.generate_audio", init_->wants_audio, unless(able_.speaks, "this server's model has no voice"));
  grant("voice", init_->voice || init_->tts_voice, unless(able_.speaks, "this server's model has no voice"));
}

/// Has a turn judged in the background: does it want a function called?
void session_machine::judge_turn(const speech::turn_listener::turn& turn) {
  if (!delegations_.has_room() || unjudged_.size() >= max_unjudged_turns) return;
  unjudged_.push_back({++last_turn_, turn.start_ms, turn.end_ms});
  writer().order(transcribe_turn{{last_turn_, turn.sound, {}, offer_}});
}

/// A turn was judged, or could not be: then the conversation goes on as if it had wanted nothing.
void session_machine::take_judgement(const unwritten_turn& turn, const transcript& heard, time_point now) {
  auto used = heard.used;
  for (const auto& each : heard.calls) {
    const auto arguments = json::scan(each.arguments);
    const bool whole = arguments.outcome == json::verdict::good && json::root(arguments).is(json::kind::object);
    const bool offered = offer_ && std::any_of(offer_->tools.begin(), offer_->tools.end(),
                                               [&](const auto& one) { return one.name == each.name; });
    if (!whole || !offered || !delegations_.has_room() || delegations_.is_under_way(each)) continue;
    auto call = each;
    call.id = make_id(random_, "call_");
    const auto unit = its_duplex().units() == 0 ? 0 : its_duplex().units() - 1;
    const auto text = words_of(call);
    say(duplex_call_begin{call.id, unit, turn.start_ms, turn.end_ms});
    say(duplex_call_delta{call.id, unit, text});
    say(duplex_call_done{call, unit, text, std::exchange(used, {})});
    delegations_.begin(std::move(call), now);
  }
  wind_delegation_clock();
}

void session_machine::take_result(const occurrence& what) {
  const auto now = what.now;
  auto event = what.event ? what.its<tool_result_event>("tool_call_id").and_then([](tool_result_event&& given) {
    return checked(std::move(given));
  })
                          : decode_tool_result(what.its_frame());
  if (!event) return reject(std::move(event.error()), now);
  if (event->result.empty()) event->result = "null";
  const bool known = event->cancelled ? delegations_.cancel(event->call_id)
                                      : delegations_.resolve(event->call_id, std::move(event->result), now);
  if (!known)
    return reject({error_code::invalid_payload, "tool_call_id: no call with this id waits for a result"}, now);
  wind_delegation_clock();
}

/// Adds the next result to what the model reads with this append, if the moment is right.
void session_machine::tell_results(std::vector<text_message>& context, time_point now) {
  if (!offer_ || its_duplex().waiting_context() + bytes_of(context) + max_told_bytes > max_waiting_context) return;
  auto told = delegations_.tell({!its_duplex().is_listening(), user_ && user_->in_turn()}, now);
  std::move(told.begin(), told.end(), std::back_inserter(context));
}

void session_machine::expire_delegations(time_point now) {
  for (auto& id : delegations_.expire(now)) say(duplex_call_abort{std::move(id), "timeout"});
  wind_delegation_clock();
}

void session_machine::wind_delegation_clock() {
  clocks_.stop(session_clock::delegation);
  if (const auto due = delegations_.next_deadline()) clocks_.set(session_clock::delegation, *due);
}

effects session_machine::on_transcript(const transcript& heard, time_point now) {
  const auto judged =
      std::find_if(unjudged_.begin(), unjudged_.end(), [&](const auto& each) { return each.number == heard.number; });
  if (judged != unjudged_.end()) {
    const auto turn = *judged;
    unjudged_.erase(judged);
    if (state_ != session_state::active) return {};
    its_duplex().count(heard.used);
    take_judgement(turn, heard, now);
    return take();
  }
  const auto found =
      std::find_if(unwritten_.begin(), unwritten_.end(), [&](const auto& each) { return each.number == heard.number; });
  if (state_ != session_state::active || found == unwritten_.end()) return {};
  input_transcript told{found->start_ms, found->end_ms, heard.text};
  if (heard.result != transcript_result::completed)
    told.problem = transcript_result_words[static_cast<std::size_t>(heard.result)];
  unwritten_.erase(found);
  say(std::move(told));
  return take();
}

void session_machine::take_turn(const occurrence& what) {
  const auto now = what.now;
  const auto bytes = what.event ? bytes_of(*what.event) : what.its_frame().body.text.size();
  if (its_chat().full(bytes)) return reject({error_code::invalid_event, "too many turns are waiting"}, now);
  const auto read = [&]() -> result<chat_append_event> {
    if (what.event)
      return what.its<chat_append_event>("input.messages").and_then([](chat_append_event&& given) {
        return checked(std::move(given));
      });
    return within_steps(schema_steps_, now,
                        [&](std::int64_t* work) { return decode_chat_append(what.its_frame(), work); });
  };
  auto event = read();
  if (!event) return reject(std::move(event.error()), now);
  if (!able_.sees && shows_something(*event)) {
    return reject({error_code::invalid_payload, "messages: this server's model does not see images or video"}, now);
  }
  if (!able_.hears && sounds(*event))
    return reject({error_code::invalid_payload, "messages: this server's model does not hear"}, now);
  event->tts &= able_.speaks;
  took_input_ = true;
  name_input(event->input_id);
  auto out = writer();
  its_chat().on_append(std::move(*event), bytes, now, out);
}

void session_machine::refuse_input(const conversation::failed& failure, time_point now) {
  if (duplex_ && failure.kind == conversation::failure_kind::context_full) return end(close_cause::context_full);
  reject({error_code::invalid_payload, failure.message}, now);
  if (state_ == session_state::closed) return;
  auto out = writer();
  if (chat_) {
    its_chat().on_failure(false, now, out);
    its_chat().proceed(now, out);
    idle_since_ = now;
  } else {
    its_duplex().on_failure(out);
    follow(its_duplex().proceed(now, out));
  }
}

void session_machine::fail_input(const conversation::failed& failure, time_point now) {
  say(error_event{error_code::inference_error, failure.message});
  auto out = writer();
  if (chat_) {
    its_chat().on_failure(true, now, out);
    if (one_failure_too_many()) return end(close_cause::backend);
    its_chat().proceed(now, out);
    idle_since_ = now;
  } else {
    its_duplex().on_failure(out);
    if (one_failure_too_many()) return end(close_cause::backend);
    follow(its_duplex().proceed(now, out));
  }
}

void session_machine::follow(flow_verdict verdict) {
  if (verdict == flow_verdict::answered) failures_in_a_row_ = 0;
  if (verdict == flow_verdict::context_full) end(close_cause::context_full);
}

// ---- a worker is lost

void session_machine::queue_again() {
  constexpr int tries = 2;
  if (++lost_before_talk_ > tries) {
    say(error_event{error_code::worker_connect_failed, "no worker could be reached"});
    return hang_up(traits(error_code::worker_connect_failed).close_code,
                   std::string(traits(error_code::worker_connect_failed).wire));
  }
  state_ = session_state::queued;
  holding_ = holding::ticket;
  clocks_.stop(session_clock::init_wait);
  writer().order(enqueue{mode_, true});
}

void session_machine::move_on(time_point now) {
  if (limits_.failover.count() == 0) return end(close_cause::backend);
  if (duplex_) its_duplex().on_worker_lost();
  if (chat_) its_chat().on_worker_lost();
  if (!clocks_.runs(session_clock::failover)) clocks_.set(session_clock::failover, now + limits_.failover);
  holding_ = holding::ticket;
  writer().order(enqueue{mode_, true});
}

// ---- clocks

void session_machine::choose_mode(mode chosen) {
  time_limit_ = origin_.accepted + duration_limit(limits_, chosen);
  clocks_.set(session_clock::total, time_limit_);
  if (chosen == mode_) return;
  mode_ = chosen;
  writer().order(retype{mode_});
}

void session_machine::expire(session_clock clock, time_point now) {
  switch (clock) {
  case session_clock::go_away: warn_of_time(now); break;
  case session_clock::turn: expire_turn(now); break;
  case session_clock::delegation: expire_delegations(now); break;
  case session_clock::init_wait: perform(session_event::init_wait_over, {.now = now}); break;
  case session_clock::resume: perform(session_event::return_over, {.now = now}); break;
  case session_clock::failover: perform(session_event::refused, {.now = now}); break;
  case session_clock::idle:
  case session_clock::total: perform(session_event::time_over, {.now = now}); break;
  case session_clock::drain: perform(session_event::grace_over, {.now = now}); break;
  }
}

void session_machine::expire_turn(time_point now) {
  say(error_event{error_code::inference_error, "the turn takes too long"});
  auto out = writer();
  its_chat().on_turn_over(now, out);
  if (one_failure_too_many()) return end(close_cause::backend);
  its_chat().proceed(now, out);
  idle_since_ = now;
  wind_chat_clocks();
}

void session_machine::warn_of_time(time_point now) {
  say(session_go_away{std::string(close_word(close_cause::timeout, spoken_)), milliseconds_until(time_limit_, now)});
}

void session_machine::wind_chat_clocks() {
  if (state_ != session_state::active || !chat_) return;
  if (const auto started = its_chat().started()) {
    clocks_.stop(session_clock::idle);
    clocks_.set(session_clock::turn, *started + limits_.chat_turn);
  } else {
    clocks_.stop(session_clock::turn);
    clocks_.set(session_clock::idle, idle_since_ + limits_.chat_idle);
  }
}

// ---- ends

void session_machine::reject(error why, time_point now) {
  say(error_event{why.code, std::move(why.message)});
  if (flood_.count(now)) hang_up(hang_up_cause::too_many_errors);
}

void session_machine::end(close_cause cause, std::string_view asked) {
  session_closed closed{std::string(close_word(cause, spoken_, asked)), std::nullopt};
  if (created_) closed.total = total();
  ended_as_ = end_of(cause, spoken_, asked);
  std::string why = closed.reason;
  say(std::move(closed));
  hang_up(close_code(cause), std::move(why));
}

void session_machine::hang_up(hang_up_cause cause) {
  hang_up(traits(cause).close_code, std::string(traits(cause).words));
}

void session_machine::hang_up(std::uint16_t code, std::string why) {
  PARLEY_ASSERT(state_ != session_state::closed, "a session ends once");
  closed_reason_ = std::move(why);
  writer().order(close_link{code, closed_reason_});
  let_go();
}

void session_machine::let_go() {
  state_ = session_state::closed;
  clocks_.stop_all();
  switch (std::exchange(holding_, holding_ == holding::engine ? holding::ending_engine : holding::nothing)) {
  case holding::nothing:
  case holding::ending_engine: break;
  case holding::ticket: writer().order(cancel_ticket{}); break;
  case holding::slot: writer().order(release_worker{}); break;
  case holding::engine: writer().order(close_engine{}); break;
  }
}

effect_writer session_machine::writer() {
  return {out_, spoken_, created_ ? std::string_view(id()) : std::string_view(),
          resume_token_ ? &last_event_id_ : nullptr};
}

} // namespace parley::protocol
