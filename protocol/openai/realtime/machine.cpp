#include "protocol/openai/realtime/machine.hpp"

#include "protocol/openai/realtime/chat_prompt.hpp"
#include "protocol/openai/realtime/client_secret.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

// The client's events and sound. What the server answers is in machine_answers.cpp.
namespace parley::protocol::openai::realtime {
namespace {

using std::chrono::milliseconds;

constexpr double least_commit_ms = 100;
constexpr milliseconds answer_within{3000}; ///< how long a client that sends nothing may wait for an answer
constexpr std::size_t most_shown = 64;      ///< of what a client wrote, in a message about it
constexpr std::size_t most_event_id = 512;  ///< a longer `event_id` is not repeated
constexpr speech::turn_onset turn{60, 0};
constexpr speech::turn_onset turn_interruption{120, 0};    ///< while a chat turn answers
constexpr speech::turn_onset hasty_interruption{340, 300}; ///< while a duplex session speaks, by eagerness
constexpr speech::turn_onset interruption{400, 300};
constexpr speech::turn_onset patient_interruption{800, 300};

std::string buffer_too_small(double ms) {
  const auto hundredths = static_cast<long>(ms * 100);
  auto digits = std::to_string(hundredths % 100);
  if (digits.size() < 2) digits.insert(0, "0");
  return "Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only "
         "has " +
         std::to_string(hundredths / 100) + "." + digits + "ms of audio.";
}

fault too_many_questions() {
  return {"rate_limit_exceeded", "The server repeats 64 KiB a second of what it keeps, after 2 MiB at once.", "",
          "rate_limit_error"};
}

fault unknown_item(std::string_view verb, std::string_view doing, const std::string& id) {
  return {"item_" + std::string(verb) + "_invalid_item_id",
          "Error " + std::string(doing) + " item: the item with id '" + id.substr(0, most_shown) + "' does not exist.",
          "item_id"};
}

} // namespace

machine::machine(origin from, machine_terms terms, random_source random)
    : terms_(std::move(terms)), origin_(std::move(from)), out_(std::move(random)), id_(out_.make_id("sess_")),
      conversation_id_(out_.make_id("conv_")), budget_(terms_.owner),
      input_(speech::make_detector(terms_.detection), budget_.open_kept()),
      inner_(inner_effects_, terms_.backlog_units) {
  config_.model = origin_.model;
  if (!origin_.session.empty()) config_ = with_defaults(config_, origin_.session);
  note_functions();
  config_.can_transcribe = terms_.transcribes;
  if (origin_.call) media_.emplace(out_);
}

effects machine::start(time_point now) {
  now_ = now;
  last_speech_ = now;
  note_lane();
  if (origin_.served) {
    send_session("session.created");
  } else {
    out_.error({"unsupported_session_type", "This server has sessions of type realtime only, over WebSocket.", ""}, "");
    end(1008, "unsupported_session_type");
  }
  return take();
}

void machine::send_session(std::string_view type) {
  const auto length = std::chrono::duration_cast<std::chrono::seconds>(terms_.longest).count();
  out_.event(type, [&](auto& event) {
    event.json("session", encode_session(config_, id_, origin_.accepted_unix_s + length));
  });
}

effects machine::on_frame(std::string_view frame, time_point now) {
  now_ = now;
  if (ended_) return {};
  const auto document = json::scan(frame);
  const auto event = json::root(document);
  if (document.outcome != json::verdict::good || !event.is(json::kind::object)) {
    refuse_event({"invalid_json", "This is not a JSON object that the server can read.", ""}, "");
    return take();
  }
  const auto given_id = json::member(event, "event_id");
  const bool repeatable = given_id.is(json::kind::string) && given_id.raw().size() <= most_event_id;
  const auto client_id = repeatable ? json::unescape(given_id) : std::string();
  event_sound sound(budget_, now_);
  event_ = &sound;
  auto read = read_client_event(event, config_, sound);
  if (!read)
    refuse_event(read.error(), client_id);
  else if (const auto why = std::visit([this](auto& known) { return handle(known); }, *read))
    refuse_event(*why, client_id);
  event_ = nullptr;
  settle();
  return take();
}

effects machine::on_sound(std::span<const float> samples, time_point now) {
  now_ = now;
  if (ended_) return {};
  const auto seconds = static_cast<double>(samples.size()) / speech::model_input_rate;
  if (auto why = event_sound(budget_, now_).charge_seconds(seconds, "audio")) {
    refuse_event(*why, "");
  } else if (!input_.make_room(seconds)) {
    refuse_event(keeps_enough("audio"), "");
  } else {
    input_.append_samples(samples);
    silence_.heard(now_);
    listen();
  }
  settle();
  return take();
}

void machine::note_it(note::what about, std::string word) {
  notes_.emplace_back(note{about, std::move(word)});
}

void machine::note_moment(turn_moment::what about, std::int64_t ago_ms) {
  notes_.emplace_back(turn_moment{about, milliseconds(ago_ms)});
}

/// Tells the statistics where answers come from, if that has changed.
void machine::note_lane() {
  constexpr std::string_view names[] = {"manual", "turn", "duplex"};
  const auto name = names[static_cast<std::size_t>(lane_now())];
  if (name == counted_lane_) return;
  counted_lane_ = name;
  note_it(note::what::lane, counted_lane_);
}

void machine::refuse_event(const fault& why, std::string_view client_event_id) {
  out_.error(why, client_event_id);
  if (flood_.count(now_)) end(1008, "too many errors");
}

// ---- the session

std::optional<fault> machine::handle(session_update& event) {
  auto next = updated(config_, event.session, event_);
  if (!next) return next.error();
  if (!budget_.take_echo(
          next->instructions.size() + next->tools.size() + next->model.size() + event.session.raw().size(), now_))
    return too_many_questions();
  const bool other_tools = next->tools != config_.tools || next->tool_choice != config_.tool_choice;
  if (next->audible != config_.audible || next->voice != config_.voice || (terms_.duplex_calls && other_tools))
    duplex_stale_ = true;
  else if (next->instructions != config_.instructions)
    tell_duplex({conversation::role::system, next->instructions});
  config_ = std::move(*next);
  note_functions();
  note_lane();
  send_session("session.updated");
  if (config_.turns.type == turn_detection::kind::none && input_.in_turn())
    end_turn(input_.now_ms(), input_.silence_ms());
  return std::nullopt;
}

machine::lane machine::lane_now() const {
  const auto& turns = config_.turns;
  if (turns.type == turn_detection::kind::none) return lane::manual;
  const bool semantic = turns.type == turn_detection::kind::semantic_vad || terms_.server_vad_is_duplex;
  const bool whole = semantic && turns.create_response;
  return whole && (config_.tools == "[]" || calls_in_duplex_) ? lane::duplex : lane::turn;
}

// ---- sound

std::optional<fault> machine::handle(audio_append& event) {
  const auto audio = event.audio.view();
  if (audio.size() > most_append_bytes) return invalid_value("audio", "one append may have 15 MiB.").value();
  if (auto why = event_sound(budget_, now_).charge(audio, config_.input, "audio")) return why;
  if (!input_.make_room(speech::seconds_of(audio, config_.input))) return keeps_enough("audio");
  if (const auto read = input_.append(audio, config_.input); !read) return read.error();
  silence_.heard(now_);
  listen();
  return std::nullopt;
}

speech::turn_onset machine::onset_needed() const {
  if (!is_active()) return turn;
  if (!active_->is_duplex()) return turn_interruption;
  const auto& eagerness = config_.turns.eagerness;
  return eagerness == "high" ? hasty_interruption : eagerness == "low" ? patient_interruption : interruption;
}

/// Goes through what was appended.
void machine::listen() {
  while (const auto heard = input_.next(config_.turns, onset_needed())) {
    if (lane_now() == lane::duplex && inner_.hear(heard->samples))
      out_.error(
          {"rate_limit_exceeded", "More than a minute of sound waits; the oldest is dropped.", "", "rate_limit_error"},
          "");
    if (heard->edge) on_edge(*heard->edge);
  }
}

void machine::on_edge(const speech::turn_edge& edge) {
  last_speech_ = now_;
  edge.begins ? begin_turn(edge.at_ms) : end_turn(edge.at_ms, edge.silence_ms);
}

void machine::begin_turn(std::int64_t at_ms) {
  turn_item_ = out_.make_id("item_");
  asked_at_.reset();
  duplex_refused_ = false;
  note_it(note::what::turn);
  const auto began = std::max<std::int64_t>(0, at_ms - config_.turns.prefix_padding_ms);
  out_.event("input_audio_buffer.speech_started", [&](auto& event) {
    event.integer("audio_start_ms", began);
    event.text("item_id", turn_item_);
  });
  if (!config_.turns.interrupt_response) return;
  if (auto* const answer = in_conversation()) {
    note_it(note::what::barge_in);
    cut(*answer, "turn_detected");
  }
  silence_call();
}

void machine::end_turn(std::int64_t at_ms, int silence_ms) {
  note_moment(turn_moment::what::speech_ended, input_.now_ms() - at_ms + silence_ms);
  out_.event("input_audio_buffer.speech_stopped", [&](auto& event) {
    event.integer("audio_end_ms", at_ms);
    event.text("item_id", turn_item_);
  });
  commit();
  asked_at_ = now_;
  if (duplex_refused_ && lane_now() == lane::duplex) {
    answer none(out_, &items_, conversation_id_, default_response(config_), media());
    none.create();
    finish_answer(none, {answer_end::how::failed, "server_busy"}, {});
  }
  answer_due_ = lane_now() == lane::turn && config_.turns.create_response;
}

void machine::commit() {
  item one;
  one.id = turn_item_.empty() ? out_.make_id("item_") : std::exchange(turn_item_, {});
  auto& part = one.content.emplace_back();
  part.type = item_part::kind::input_audio;
  part.has_transcript = false;
  part.sound = input_.commit();
  out_.event("input_audio_buffer.committed", [&](auto& event) {
    write_id(event, "previous_item_id", items_.last_id());
    event.text("item_id", one.id);
  });
  want_transcript(one);
  add_item(std::move(one));
}

/// Has it written down if the client asked for that.
void machine::want_transcript(const item& one) {
  if (!config_.wants_transcripts() || !one.content.front().sound) return;
  inner_effects_.emplace_back(
      transcribe{transcripts_.ask(one.content.front().sound, one.id, config_.transcription.language)});
}

effects machine::on_transcript(const transcript& heard, time_point now) {
  now_ = now;
  const auto asked = transcripts_.answered(heard.number);
  if (ended_ || !asked) return {};
  const auto* one = items_.find(*asked);
  if (one == nullptr || one->content.empty()) return {}; // deleted meanwhile
  const auto about_item = [&](auto& event) {
    event.text("item_id", *asked);
    event.integer("content_index", 0);
  };
  constexpr std::string_view prefix = "conversation.item.input_audio_transcription";
  if (heard.result != transcript_result::completed) {
    note_it(note::what::error, std::string(code_of(heard.result)));
    out_.event(std::string(prefix) + ".failed", [&](auto& event) {
      about_item(event);
      auto error = event.object("error");
      error.text("type", "server_error");
      error.text("code", code_of(heard.result));
      error.text("message", words_of(heard.result));
      error.close();
    });
    return take();
  }
  items_.edit(*asked, [&](item& heard_in) {
    heard_in.content.front().text = heard.text;
    heard_in.content.front().has_transcript = true;
  });
  if (!heard.text.empty()) {
    out_.event(std::string(prefix) + ".delta", [&](auto& event) {
      about_item(event);
      event.text("delta", heard.text);
    });
  }
  out_.event(std::string(prefix) + ".completed", [&](auto& event) {
    about_item(event);
    event.text("transcript", heard.text);
    auto used = event.object("usage");
    used.text("type", "duration");
    used.number("seconds", heard.seconds, 3);
    used.close();
  });
  return take();
}

/// The server's own item, at the end of the conversation.
void machine::add_item(item one) {
  const auto before = items_.last_id(), shown = encode_item(one);
  items_.append(std::move(one));
  for (const auto* type : {"conversation.item.added", "conversation.item.done"}) {
    out_.event(type, [&](auto& event) {
      write_id(event, "previous_item_id", before);
      event.json("item", shown);
    });
  }
}

std::optional<fault> machine::handle(audio_commit&) {
  if (input_.uncommitted_ms() < least_commit_ms)
    return fault{"input_audio_buffer_commit_empty", buffer_too_small(input_.uncommitted_ms()), ""};
  note_moment(turn_moment::what::speech_ended);
  commit();
  return std::nullopt;
}

std::optional<fault> machine::handle(audio_clear&) {
  input_.clear();
  turn_item_.clear();
  out_.event("input_audio_buffer.cleared", [](auto&) {});
  return std::nullopt;
}

/// A client that sends nothing in the middle of a turn or soon after it, or while the model speaks, is silent.
void machine::fill_silence() {
  silence_.fill(now_);
  input_.append_silence(static_cast<int>(guest::silence::step.count()));
  listen();
}

// ---- items

std::optional<fault> machine::handle(item_create& event) {
  if (event.one.id.empty()) event.one.id = out_.make_id("item_");
  if (event.one.kind == item_kind::function_call && event.one.call_id.empty())
    event.one.call_id = out_.make_id("call_");
  if (event.one.kind == item_kind::function_call_output && !items_.has_call(event.one.call_id))
    return unknown_call(event.one.call_id, "item.call_id");
  if (auto why = items_.judge(event.one)) return why;
  const auto shown = encode_item(event.one);
  const bool seen = lane_now() == lane::duplex && is_camera_view(event.one);
  const auto content = seen ? event.one.content : std::vector<item_part>();
  const bool output = event.one.kind == item_kind::function_call_output;
  const auto id = event.one.id;
  const auto before = items_.insert(std::move(event.one), event.previous);
  if (!before) return before.error();
  for (const auto* type : {"conversation.item.added", "conversation.item.done"}) {
    out_.event(type, [&](auto& out) {
      write_id(out, "previous_item_id", *before);
      out.json("item", shown);
    });
  }
  for (const auto& part : content) inner_.show(part.picture);
  watches_ = watches_ || seen;
  const auto* const kept = output ? items_.find(id) : nullptr;
  const bool answered = kept != nullptr && tell_result(*kept);
  if (seen)
    duplex_stale_ = duplex_stale_ || (inner_.is_open() && inner_.kind() == mode::audio);
  else if (answered)
    asked_at_ = now_; // it is told without being asked again
  else if (items_.last_id() == id)
    tell_duplex(item_in_words(items_, items_.size() - 1));
  else
    duplex_stale_ = true;
  return std::nullopt;
}

std::optional<fault> machine::handle(item_delete& event) {
  if (!items_.erase(event.id)) return unknown_item("delete", "deleting", event.id);
  duplex_stale_ = true;
  out_.event("conversation.item.deleted", [&](auto& out) { out.text("item_id", event.id); });
  return std::nullopt;
}

std::optional<fault> machine::handle(item_retrieve& event) {
  const auto* one = items_.find(event.id);
  if (one == nullptr) return unknown_item("retrieve", "retrieving", event.id);
  if (!budget_.take_echo(text_of(*one), now_)) return too_many_questions();
  out_.event("conversation.item.retrieved", [&](auto& out) { out.json("item", encode_item(*one)); });
  return std::nullopt;
}

std::optional<fault> machine::handle(item_truncate& event) {
  const auto* one = items_.find(event.id);
  if (one == nullptr) return unknown_item("truncate", "truncating", event.id);
  if (one->kind != item_kind::message || one->role != item_role::assistant)
    return fault{"invalid_value", "Only model output audio messages can be truncated.", "item_id"};
  // Its sound comes at the pace of a player, so what the client has not heard of it has not been sent yet.
  if (is_active() && active_->said.is_saying(event.id) && config_.turns.interrupt_response &&
      (active_->paced || active_->is_duplex()))
    cut(*active_, "client_cancelled");
  truncate(event.id, static_cast<double>(event.audio_end_ms));
  out_.event("conversation.item.truncated", [&](auto& out) {
    out.text("item_id", event.id);
    out.integer("content_index", event.content_index);
    out.integer("audio_end_ms", event.audio_end_ms);
  });
  return std::nullopt;
}

/// Shortens what the conversation has of a spoken answer to so much of its sound.
void machine::truncate(const std::string& id, double ms) {
  const auto* one = items_.find(id);
  if (one == nullptr || one->content.empty() || ms >= one->sound_ms) return;
  items_.edit(id, [&](item& said) {
    auto& words = said.content.front().text;
    words = cut_words(words, ms / said.sound_ms);
    said.sound_ms = ms;
  });
  if (is_active()) active_->said.cut_short(id);
}

/// Of a call: what was sent and is not heard yet is not heard any more, and the conversation has only what was.
void machine::silence_call() {
  if (!media_) return;
  for (const auto& each : media_->clear(now_)) {
    if (items_.find(each.id) == nullptr) continue; // out of band, or deleted
    truncate(each.id, each.heard_ms);
    out_.event("conversation.item.truncated", [&](auto& out) {
      out.text("item_id", each.id);
      out.integer("content_index", 0);
      out.integer("audio_end_ms", static_cast<std::int64_t>(each.heard_ms));
    });
  }
}

std::optional<fault> machine::handle(output_clear&) {
  if (!media_ || !media_->plays()) return std::nullopt;
  if (auto* const answer = in_conversation()) cut(*answer, "client_cancelled");
  silence_call();
  return std::nullopt;
}

// ---- responses

std::optional<fault> machine::handle(response_create& event) {
  if (const auto* other = in_conversation(); other != nullptr && event.request.in_conversation)
    return fault{"conversation_already_has_active_response",
                 "Conversation already has an active response in progress: " + other->said.id() +
                     ". Wait until the response is finished before creating a new one.",
                 ""};
  if (!budget_.take_response(now_))
    return fault{"rate_limit_exceeded", "Responses are asked for too fast.", "", "rate_limit_error"};
  return create(std::move(event.request));
}

std::optional<fault> machine::handle(response_cancel& event) {
  if (auto* which = event.response_id.empty() ? in_conversation() : find_response(event.response_id)) {
    cut(*which, "client_cancelled");
    return std::nullopt;
  }
  if (forgives_cancel_until_ && now_ < *forgives_cancel_until_) return std::nullopt;
  return fault{"response_cancel_not_active", "Cancellation failed: no active response found.", ""};
}

// ---- time

effects machine::tick(time_point now) {
  now_ = now;
  if (ended_) return {};
  if (now >= origin_.accepted + terms_.longest) {
    out_.error({"session_expired", "Your session hit the maximum duration.", ""}, "");
    end(1001, "session_expired");
    return take();
  }
  if (const auto due = inner_.give_up(); due && now >= *due) lose_inner({answer_end::how::failed, "server_busy"});
  if (const auto due = silence_due(); due && now >= *due) fill_silence();
  if (media_) media_->tick(now);
  settle();
  return take();
}

std::optional<time_point> machine::silence_due() const {
  const bool asked = inner_.is_duplex() && asked_at_ && now_ < *asked_at_ + answer_within;
  const bool needed = input_.in_turn() || asked || (is_active() && active_->is_duplex());
  return needed ? silence_.due() : std::nullopt;
}

std::optional<time_point> machine::next_deadline() const {
  if (ended_) return std::nullopt;
  auto due = origin_.accepted + terms_.longest;
  if (const auto waited = inner_.give_up()) due = std::min(due, *waited);
  if (const auto silence = silence_due()) due = std::min(due, *silence);
  if (const auto idle = idle_due()) due = std::min(due, *idle);
  if (const auto release = release_due()) due = std::min(due, *release);
  if (opens_at_) due = std::min(due, *opens_at_);
  if (const auto heard = media_ ? media_->due() : std::nullopt) due = std::min(due, *heard);
  return due;
}

effects machine::on_drain(time_point now) {
  now_ = now;
  draining_ = true;
  if (!ended_) settle();
  return take();
}

void machine::end(std::uint16_t code, std::string reason) {
  if (std::exchange(ended_, true)) return;
  end_ = end_client{code, std::move(reason)};
  active_.reset();
  beside_.reset();
  waiting_.clear();
  inner_.close();
}

effects machine::take() {
  for (auto& code : out_.take_codes()) note_it(note::what::error, std::move(code));
  // First: the statistics must not lag behind what the client has been told.
  effects all = std::exchange(notes_, {});
  for (auto& frame : out_.take()) all.emplace_back(to_client{std::move(frame)});
  if (media_) {
    for (auto& sound : media_->take())
      sound ? all.emplace_back(play_sound{std::move(sound)}) : all.emplace_back(drop_sound{});
  }
  all.insert(all.end(), std::make_move_iterator(inner_effects_.begin()), std::make_move_iterator(inner_effects_.end()));
  inner_effects_.clear();
  if (end_) {
    all.emplace_back(*std::move(end_));
    end_.reset();
  }
  return all;
}

} // namespace parley::protocol::openai::realtime
