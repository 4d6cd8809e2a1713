#include "protocol/openai/live/machine.hpp"

#include "base/utf8.hpp"
#include "protocol/delegation/delegations.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/openai/realtime/chat_prompt.hpp"
#include "protocol/openai/realtime/client_secret.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

// The client's events, its sound, and time. The inner sessions are in machine_inner.cpp.
namespace parley::protocol::openai::live {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t most_event_id = 512; ///< a longer `event_id` is not repeated
constexpr milliseconds usage_every = std::chrono::seconds(60);
constexpr int pause_in_barge_in_ms = 300;
constexpr std::size_t most_remarks = 8;

constexpr std::string_view channel_events[] = {"session.instructions.appended", "session.thinking.appended",
                                               "session.commentary.appended"};

} // namespace

machine::machine(origin from, machine_terms terms, random_source random)
    : terms_(std::move(terms)), origin_(std::move(from)), out_(std::move(random)), id_(out_.make_id("sess_")),
      budget_(terms_.owner), finder_(speech::make_detector(terms_.detection)),
      inner_(inner_effects_, terms_.backlog_units) {}

effects machine::start(time_point now) {
  now_ = now;
  note_it(note::what::lane, "duplex");
  return take();
}

// ---- events

effects machine::on_frame(std::string_view frame, time_point now) {
  now_ = now;
  if (ended_) return {};
  event_id_.clear();
  const auto document = json::scan(frame);
  const auto event = json::root(document);
  if (document.outcome != json::verdict::good || !event.is(json::kind::object)) {
    refuse_event({"invalid_json", "This is not a JSON object that the server can read.", ""});
    return take();
  }
  const auto given = json::member(event, "event_id");
  if (given.is(json::kind::string) && given.raw().size() <= most_event_id) event_id_ = json::unescape(given);
  const auto type = json::member(event, "type");
  const bool starts = type.is(json::kind::string) && json::means(type, "session.start");
  if (!begun_ && !starts)
    refuse_event({"session_not_started", "The first event must be session.start.", ""});
  else if (begun_ && starts)
    refuse_event({"session_already_started", "The session has started already.", "type"});
  else
    take_event(event);
  event_id_.clear();
  settle();
  return take();
}

void machine::take_event(json::value event) {
  event_sound sound(budget_, now_);
  auto read = read_client_event(event, sound);
  if (!read)
    refuse_event(read.error());
  else if (const auto why = std::visit([this](auto& known) { return handle(known); }, *read))
    refuse_event(*why);
}

template<class Write>
void machine::answer(std::string_view type, Write write) {
  out_.event(type, [&](json::object_writer& event) {
    if (!event_id_.empty()) event.text("client_event_id", event_id_);
    write(event);
  });
}

void machine::refuse_event(const fault& why) {
  note_it(note::what::error, why.code);
  out_.event("error", [&](json::object_writer& event) {
    auto error = event.object("error");
    error.text("type", why.type);
    error.text("code", why.code);
    error.text("message", why.message);
    if (!why.param.empty()) error.text("param", why.param);
    if (!event_id_.empty()) error.text("client_event_id", event_id_);
    error.close();
  });
  if (flood_.count(now_)) end(1008, "too many errors");
}

void machine::inform(std::string_view code, std::string_view message) {
  answer("info", [&](auto& event) {
    event.text("code", code);
    event.text("message", message);
  });
}

void machine::inform_of_delegation() {
  const auto& config = begun_->config;
  if (config.delegates_to_client) return;
  const auto none = [&](std::string_view why) {
    inform("delegation_unavailable",
           "Nothing is delegated, because " + std::string(why) + ": the model answers by itself.");
  };
  if (!terms_.delegates) return none("this server calls no functions");
  const auto functions = realtime::offered_functions(config.functions);
  if (functions.empty()) return none("there are no functions");
  if (!fit_to_judge(functions)) none("its functions have more than 16 KiB together");
}

/// What the client's ephemeral key says and the client does not.
void machine::apply_defaults(session_config& config) const {
  if (origin_.session.empty()) return;
  const auto defaults = realtime::with_defaults({}, origin_.session);
  if (config.instructions.empty()) config.instructions = defaults.instructions;
  if (config.voice_name != session_config{}.voice_name) return;
  config.voice_name = defaults.voice;
  config.voice.clear();
  json::append_string(defaults.voice, config.voice);
}

machine::complaint machine::handle(session_start& event) {
  apply_defaults(event.config);
  history_ = std::move(event.config.input);
  begun_ = std::make_unique<begun>(std::move(event.config));
  start_event_id_ = event_id_;
  open_duplex();
  return std::nullopt;
}

machine::complaint machine::handle(session_update& event) {
  event_sound may(budget_, now_);
  auto next = updated(begun_->config, event.session, may);
  if (!next) return next.error();
  if (!budget_.take_echo(next->instructions.size() + next->delegation.size(), now_))
    return fault{"rate_limit_exceeded", "The server repeats 64 KiB a second of what it keeps, after 2 MiB at once.", "",
                 "rate_limit_error"};
  const bool changed = next->delegates_otherwise(begun_->config);
  if (terms_.delegates && changed) stale_since_ = now_;
  begun_->config = std::move(*next);
  answer("session.updated", [&](auto& out) {
    out.json("session", encode_session(begun_->config, id_, origin_.accepted_unix_s + terms_.longest.count() / 1000));
  });
  if (changed) inform_of_delegation();
  return std::nullopt;
}

machine::complaint machine::handle(session_close&) {
  close_session("close_requested", 1000);
  return std::nullopt;
}

machine::complaint machine::handle(context_append& event) {
  if (!started_) return fault{"session_not_started", "Wait for session.started.", ""};
  const auto known = std::find_if(delegations_.begin(), delegations_.end(),
                                  [&](const auto& each) { return each.id == event.delegation_id; });
  const bool belongs = known != delegations_.end();
  if (!event.delegation_id.empty() && (!belongs || !begun_->config.delegates_to_client))
    return fault{"invalid_value", "There is no client delegation with this id.", "delegation_id"};
  if (event.to == context_append::channel::commentary && belongs && waits_for(*known)) {
    tell_result(*known, std::move(event.content));
  } else if (event.to == context_append::channel::commentary) {
    if (auto why = remark_on(std::move(event.content))) return why;
  } else {
    if (!inner_.is_duplex() || !inner_.tell(conversation::role::system, event.content)) stale_since_ = now_;
    remember(item_role::system, item_part::kind::input_text, std::move(event.content));
  }
  answer(channel_events[static_cast<std::size_t>(event.to)], [&](auto& out) {
    out.integer("start_ms", ms_at(now_));
    out.integer("end_ms", ms_at(now_));
  });
  return std::nullopt;
}

/// Has a chat turn say it.
machine::complaint machine::remark_on(std::string content) {
  if (remarks_.size() >= most_remarks)
    return fault{"rate_limit_exceeded", "Too much commentary waits to be said.", "", "rate_limit_error"};
  remarks_.push_back({std::move(content), now_});
  return std::nullopt;
}

machine::complaint machine::handle(response_item& event) {
  if (begun_->config.delegates_to_client || !terms_.delegates)
    return fault{"delegation_unavailable", "Nothing was delegated to responses.", "type"};
  auto& one = event.one;
  if (one.kind != item_kind::function_call_output)
    return fault{"invalid_value", "This server takes results of functions only.", "item.type"};
  const auto call = std::find_if(delegations_.begin(), delegations_.end(),
                                 [&](const auto& each) { return !each.over && each.id == one.call_id; });
  if (call == delegations_.end())
    return fault{"invalid_tool_call_id", "No call with this id waits for a result.", "item.call_id"};
  if (one.payload.size() > max_tool_result_bytes)
    return fault{"invalid_value", "A result may have " + std::to_string(max_tool_result_bytes) + " bytes.",
                 "item.output"};
  if (waits_for(*call)) {
    tell_result(*call, std::move(one.payload));
    return std::nullopt;
  }
  call->over = true; // the session that asked for it is gone
  return remark_on("The result of " + call->name + " is: " + one.payload);
}

/// What has a result is told anyway.
machine::complaint machine::handle(response_create&) {
  if (begun_->config.delegates_to_client || !terms_.delegates)
    return fault{"delegation_unavailable", "Nothing was delegated to responses.", "type"};
  return std::nullopt;
}

machine::complaint machine::handle(audio_mute& event) {
  muted_ = event.muted;
  answer(muted_ ? "session.input_audio.muted" : "session.input_audio.unmuted", [](auto&) {});
  return std::nullopt;
}

// ---- the user's sound

machine::complaint machine::handle(audio_append& event) {
  const auto audio = event.audio.view();
  if (audio.size() > most_append_bytes) return fault{"invalid_audio", "One append may have 15 MiB of base64.", "audio"};
  if (auto why = event_sound(budget_, now_).charge(audio, begun_->config.format, "audio")) {
    if (why->code == "invalid_value") why->code = "invalid_audio";
    return why;
  }
  std::vector<float> samples;
  if (auto read = begun_->decoder.feed(audio, samples); !read) {
    auto why = invalid_value("audio", read.error()).value();
    why.code = "invalid_audio";
    return why;
  }
  if (muted_) std::fill(samples.begin(), samples.end(), 0.0f);
  silence_.heard(now_);
  listen(samples);
  return std::nullopt;
}

void machine::listen(std::span<const float> samples) {
  while (!samples.empty()) {
    speech::turn_rules rules;
    if (speaking() && terms_.barge_in.count() > 0)
      rules.onset = {static_cast<int>(terms_.barge_in.count()), pause_in_barge_in_ms};
    const auto found = finder_.feed(samples, rules);
    if (terms_.transcribes) turn_.hear(samples.first(found.used), found.edge, finder_);
    if (inner_.hear(samples.first(found.used)))
      inform("input_audio_dropped", "More than a minute of sound waits; the oldest is dropped.");
    samples = samples.subspan(found.used);
    if (found.edge) on_edge(*found.edge);
  }
}

void machine::on_edge(const speech::turn_edge& edge) {
  if (!edge.begins) return end_turn(edge.silence_ms + finder_.now_ms() - edge.at_ms);
  note_it(note::what::turn);
  turn_began_ms_ = std::max<std::int64_t>(0, ms_at(now_) - (finder_.now_ms() - edge.at_ms));
  if (!speaking() || terms_.barge_in.count() == 0) return;
  note_it(note::what::barge_in);
  cut();
}

/// The user's, by an edge or because the model speaks.
void machine::end_turn(std::int64_t ago_ms) {
  notes_.emplace_back(turn_moment{turn_moment::what::speech_ended, milliseconds(ago_ms)});
  remember(item_role::user, item_part::kind::input_audio, "");
  if (!terms_.transcribes || !started_) return;
  inner_effects_.emplace_back(transcribe{transcripts_.ask(turn_.take(), written_turn{turn_began_ms_, ms_at(now_)})});
}

effects machine::on_transcript(const transcript& heard, time_point now) {
  now_ = now;
  const auto asked = transcripts_.answered(heard.number);
  if (ended_ || !asked) return {};
  if (heard.result != transcript_result::completed) {
    note_it(note::what::error, std::string(code_of(heard.result)));
  } else if (!heard.text.empty()) {
    out_.event("session.input_transcript.delta", [&](auto& event) {
      event.text("delta", heard.text);
      event.integer("start_ms", asked->start_ms);
      event.integer("end_ms", asked->end_ms);
    });
  }
  return take();
}

/// The user has spoken for long enough while the model did.
void machine::cut() {
  begun_->speech.cut();
  if (side_turn_) {
    if (inner_.is_chat()) inner_.close();
    side_turn_.reset();
    stale_since_ = now_;
  } else if (inner_.speaks()) {
    inner_.cut();
  }
  remember_speech();
}

/// A client that sends nothing in the middle of a turn, or while the model speaks, is silent.
void machine::fill_silence() {
  silence_.fill(now_);
  listen(std::vector<float>(speech::samples_per_ms * static_cast<std::size_t>(guest::silence::step.count())));
}

// ---- what the model says

bool machine::speaking() const {
  return side_turn_ || inner_.speaks() || (begun_ && begun_->speech.playing(now_));
}

/// Sends what is due.
void machine::release_speech() {
  while (const auto piece = begun_->speech.next(now_)) {
    if (std::exchange(is_first_sound_, false)) notes_.emplace_back(turn_moment{turn_moment::what::sound});
    if (!piece->words.empty()) {
      said_ += piece->words;
      const auto from = ms_at(piece->plays_at);
      out_.event("session.output_transcript.delta", [&](auto& event) {
        event.text("delta", piece->words);
        event.integer("start_ms", from);
        event.integer("end_ms", from + piece->words_ms);
      });
    }
    out_.event_without_id("session.output_audio.delta", [&](auto& event) { event.text("delta", piece->audio); });
  }
}

/// Adds to what the next inner session is told.
void machine::remember(item_role who, item_part::kind kind, std::string text) {
  if (kind == item_part::kind::input_audio && !history_.empty()) {
    const auto& last = history_[history_.size() - 1].content;
    if (!last.empty() && last.front().type == kind) return;
  }
  item one;
  one.role = who;
  auto& part = one.content.emplace_back();
  part.type = kind;
  part.text = std::move(text);
  history_.append(std::move(one));
}

void machine::remember_speech() {
  if (!said_.empty()) remember(item_role::assistant, item_part::kind::output_text, std::exchange(said_, {}));
}

// ---- time

std::int64_t machine::ms_at(time_point when) const {
  if (!started_) return 0;
  return std::max<std::int64_t>(0, std::chrono::duration_cast<milliseconds>(when - *started_).count());
}

effects machine::tick(time_point now) {
  now_ = now;
  if (ended_) return {};
  if (now >= origin_.accepted + terms_.longest) {
    started_ ? close_session("expired", 1001) : end(1001, "session_expired");
    return take();
  }
  if (const auto due = inner_.give_up(); due && now >= *due) lose_inner();
  if (const auto due = silence_due(); due && now >= *due) fill_silence();
  if (next_usage_ && now >= *next_usage_) send_usage();
  settle();
  return take();
}

std::optional<time_point> machine::silence_due() const {
  constexpr milliseconds told_within{3000};
  const bool telling = told_at_ && now_ < *told_at_ + told_within;
  return finder_.in_turn() || speaking() || telling ? silence_.due() : std::nullopt;
}

std::optional<time_point> machine::next_deadline() const {
  if (ended_) return std::nullopt;
  auto first = origin_.accepted + terms_.longest;
  const auto consider = [&](std::optional<time_point> due) {
    if (due) first = std::min(first, *due);
  };
  consider(inner_.give_up());
  consider(silence_due());
  consider(next_usage_);
  if (begun_) {
    consider(begun_->speech.due());
    if (begun_->speech.last_end() && *begun_->speech.last_end() > now_)
      consider(begun_->speech.last_end()); // it falls silent
  }
  consider(remark_due());
  consider(reopening_due());
  return first;
}

void machine::write_usage(json::object_writer& to) const {
  auto usage = to.object("usage");
  usage.number("seconds", static_cast<double>(ms_at(now_)) / 1000, 3);
  usage.close();
}

void machine::send_usage() {
  next_usage_ = now_ + usage_every;
  out_.event("session.usage.updated", [&](auto& event) {
    write_usage(event);
    auto window = event.object("context_window");
    const auto share = static_cast<double>(context_tokens_used_) / std::max(1, terms_.context_tokens);
    window.number("usage_ratio", std::clamp(share, 0.0, 1.0), 4);
    window.close();
  });
}

effects machine::on_drain(time_point now) {
  now_ = now;
  draining_ = true;
  if (!ended_) settle();
  return take();
}

/// Tells the client that the session is over, and why.
void machine::close_session(std::string_view reason, std::uint16_t code) {
  answer("session.closed", [&](auto& event) {
    event.text("reason", reason);
    event.json("session", encode_session(begun_->config, id_, origin_.accepted_unix_s + terms_.longest.count() / 1000));
    write_usage(event);
  });
  end(code, std::string(reason));
}

void machine::end(std::uint16_t code, std::string reason) {
  if (std::exchange(ended_, true)) return;
  end_ = end_client{code, std::move(reason)};
  inner_.close();
}

effects machine::take() {
  effects all = std::exchange(notes_, {}); // the statistics must not lag behind what the client has been told
  for (auto& frame : out_.take()) all.emplace_back(to_client{std::move(frame)});
  all.insert(all.end(), std::make_move_iterator(inner_effects_.begin()), std::make_move_iterator(inner_effects_.end()));
  inner_effects_.clear();
  if (end_) {
    all.emplace_back(*std::move(end_));
    end_.reset();
  }
  return all;
}

} // namespace parley::protocol::openai::live
