#include "protocol/delegation/delegations.hpp"
#include "protocol/guest/heard.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/openai/live/machine.hpp"
#include "protocol/openai/realtime/chat_prompt.hpp"

#include <algorithm>
#include <utility>

// The inner sessions: a duplex session, and chat sessions for what the client wants said.
namespace parley::protocol::openai::live {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t history_bytes = 6000;     ///< about 1,500 tokens
constexpr std::size_t preroll_samples = 16'000; ///< what a duplex session hears of the time before it was open
constexpr milliseconds settled_after{250};      ///< no more is added to the context: reopening is worth its price
constexpr milliseconds retry_after{2000};
constexpr milliseconds most_patience{5000}; ///< how long a remark waits for the user to finish

/// A client that handles delegations names no functions. These stand for what a model neither knows nor can do: a turn of
/// the user that wants one of them called is delegated.
constexpr std::string_view clients_work = R"([
{"type":"function","name":"get_time","description":"Get the current time.","parameters":{"type":"object","properties":{}}},
{"type":"function","name":"get_weather","description":"Get the weather in a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}},
{"type":"function","name":"search","description":"Look up something that is new, private or not known for certain.","parameters":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}},
{"type":"function","name":"do_task","description":"Do something for the user: send, book, buy, play, open, switch, remind, calculate at length.","parameters":{"type":"object","properties":{"task":{"type":"string"}},"required":["task"]}}
])";
constexpr std::size_t most_delegations = 64; ///< ids that are known

} // namespace

/// Counts a session that is to be opened now; or it has to wait.
bool machine::may_open() {
  const bool may_start = !terms_.may_start || terms_.may_start(now_);
  opens_at_ = may_start ? budget_.open_session(now_) : now_ + retry_after;
  return !opens_at_;
}

void machine::open(mode kind, init_event init) {
  inner_.open(kind, std::move(init), now_ + terms_.slot_wait);
}

void machine::open_duplex() {
  for (auto& each : delegations_) each.waits = false;
  open(mode::audio, duplex_init());
  stale_since_.reset();
}

init_event machine::duplex_init() const {
  init_event out;
  out.system_prompt = begun_->config.instructions;
  if (const auto history = realtime::in_words(history_, history_bytes); !history.empty())
    out.system_prompt += (out.system_prompt.empty() ? "" : "\n\n") + ("Conversation so far:\n" + history);
  out.has_system_prompt = !out.system_prompt.empty();
  // Of the name that the client chose; null = the server's own.
  out.voice = speech::voice_named(terms_.voices.get(), begun_->config.voice_name);
  out.config.force_listen_count = 0;
  const auto& config = begun_->config;
  if (!terms_.delegates || !config.names_delegation || !config.may_call) return out;
  out.offer.tools = realtime::offered_functions(config.delegates_to_client ? clients_work : config.functions);
  return out;
}

effects machine::on_inner_event(std::uint64_t number, const server_event& event, time_point now) {
  now_ = now;
  if (ended_ || !inner_.heeds(number)) return {};
  if (const auto* error = std::get_if<error_event>(&event); error && error->code == error_code::quota_exceeded) {
    run_out(error->message);
    return take();
  }
  if (std::holds_alternative<session_created>(event)) {
    if (!inner_.begin()) return {};
    on_created();
  }
  if (const auto tokens = guest::context_in(event)) context_tokens_used_ = *tokens;
  if (inner_.is_chat())
    std::visit([this](const auto& each) { on_chat(each); }, event);
  else
    std::visit([this](const auto& each) { on_duplex(each); }, event);
  settle();
  return take();
}

effects machine::on_inner_closed(std::uint64_t number, time_point now) {
  now_ = now;
  if (ended_ || !inner_.heeds(number)) return {};
  lose_inner();
  settle();
  return take();
}

void machine::on_created() {
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

/// The client's key may use no more for now, so all ends.
void machine::run_out(const std::string& why) {
  const std::string code(out_of_quota);
  event_id_ = started_ ? std::string() : start_event_id_;
  refuse_event({code, why, "", code});
  if (started_) return close_session("expired", 1008); // the API has no word for it
  end(1008, code);
}

/// The inner session is of no use any more. Before the client was told of it, that is the end.
void machine::lose_inner() {
  const bool waited = inner_.waits();
  inner_.close();
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

void machine::on_chat(const session_created&) {
  if (side_turn_) inner_.ask(std::exchange(side_turn_->asks, nullptr));
}

void machine::on_chat(const output_delta& said) {
  if (!side_turn_ || said.kind == output_kind::listen) return;
  begun_->speech.say(guest::words_in(said));
  begun_->speech.sound(guest::samples_in(guest::sound_in(said)), false);
}

void machine::on_chat(const response_done&) {
  if (!side_turn_) return;
  inner_.close();
  end_side_turn();
}

void machine::on_duplex(const output_delta& said) {
  if (guest::answers_unit(said)) inner_.answered();
  if (said.kind == output_kind::listen) {
    if (inner_.speaks()) begun_->speech.end();
    return inner_.falls_silent();
  }
  if (inner_.was_cut(said.response_id)) return;
  const auto words = guest::words_in(said);
  const auto sound = guest::sound_in(said);
  if (words.empty() && !sound && !inner_.speaks()) return;
  if (!speaking()) begin_speech();
  inner_.speaks(said.response_id);
  begun_->speech.say(words);
  begun_->speech.sound(guest::samples_in(sound), true);
  if (!said.end_of_turn) return;
  begun_->speech.end();
  inner_.falls_silent();
}

void machine::on_duplex(const error_event&) {
  if (inner_.waits())
    lose_inner();
  else if (inner_.telling()) // a unit was lost, and it goes on; but what it was told may be lost, too
    stale_since_ = now_;
}

// ---- what is delegated

void machine::on_duplex(const duplex_call_done& event) {
  note_it(note::what::tool_call);
  const auto& id = event.call.id;
  if (delegations_.size() >= most_delegations) delegations_.pop_front();
  delegations_.push_back({id, event.call.name});
  const bool client = begun_->config.delegates_to_client;
  const auto response = client ? std::string() : out_.make_id("resp_");
  out_.event("session.delegation.created", [&](auto& out) {
    auto delegation = out.object("delegation");
    delegation.text("id", id);
    delegation.text("target", client ? "client" : "responses");
    delegation.text("type", "delegation");
    if (!client) delegation.text("response_id", response);
    delegation.close();
    out.integer("offset_ms", ms_at(now_));
  });
  if (!client) tell_of_response(event.call, response, event.used);
}

/// The events of a response that calls a function, as the Responses API streams them.
void machine::tell_of_response(const conversation::tool_call& call, const std::string& response_id, const usage& used) {
  const auto item_id = out_.make_id("fc_");
  int number = 0;
  const auto nested = [&](std::string_view type, auto write) {
    out_.event("response.event", [&](auto& out) {
      out.text("delegation_id", call.id);
      auto event = out.object("event");
      event.text("type", type);
      event.integer("sequence_number", number++);
      write(event);
      event.close();
    });
  };
  const auto response = [&](auto& event, std::string_view status) {
    auto of = event.object("response");
    of.text("id", response_id);
    of.text("object", "response");
    of.text("status", status);
    of.json("output", "[]");
    if (status == "completed") {
      const auto in = used.input_text + used.input_audio + used.input_vision;
      const auto out = used.output_text + used.output_audio;
      auto spent = of.object("usage");
      spent.integer("input_tokens", in);
      spent.json("input_tokens_details", R"({"cached_tokens":0,"cache_write_tokens":0})");
      spent.integer("output_tokens", out);
      spent.json("output_tokens_details", R"({"reasoning_tokens":0})");
      spent.integer("total_tokens", in + out);
      spent.close();
    }
    of.close();
  };
  const auto item = [&](auto& event, std::string_view status, std::string_view arguments) {
    event.integer("output_index", 0);
    auto of = event.object("item");
    of.text("type", "function_call");
    of.text("id", item_id);
    of.text("call_id", call.id);
    of.text("name", call.name);
    of.text("arguments", arguments);
    of.text("status", status);
    of.close();
  };
  const auto arguments = [&](auto& event, std::string_view member) {
    event.text("item_id", item_id);
    event.integer("output_index", 0);
    event.text(member, call.arguments);
  };
  nested("response.created", [&](auto& event) { response(event, "in_progress"); });
  nested("response.output_item.added", [&](auto& event) { item(event, "in_progress", ""); });
  nested("response.function_call_arguments.delta", [&](auto& event) { arguments(event, "delta"); });
  nested("response.function_call_arguments.done", [&](auto& event) { arguments(event, "arguments"); });
  nested("response.output_item.done", [&](auto& event) { item(event, "completed", call.arguments); });
  nested("response.completed", [&](auto& event) { response(event, "completed"); });
}

void machine::on_duplex(const duplex_call_abort& event) {
  for (auto& each : delegations_) each.over = each.over || each.id == event.call_id;
  inform("delegation_expired", "Nobody has answered delegation " + event.call_id + " in time; the model was told so.");
}

/// Whether the duplex session that asked for it waits for its result.
bool machine::waits_for(const delegation& which) const {
  return which.waits && !which.over && inner_.is_duplex() && inner_.ready();
}

void machine::tell_result(delegation& which, std::string result) {
  which.over = true;
  told_at_ = now_;
  inner_.say(tool_result_event{which.id, std::move(result), false});
}

/// The model has heard enough, whatever the voice detector thinks: who speaks from now on interrupts it.
void machine::begin_speech() {
  if (finder_.in_turn()) end_turn(finder_.silence_ms());
  is_first_sound_ = true;
  finder_.give_up();
  silence_.forgive(now_);
}

/// Asks chat to say what the client wants said.
void machine::begin_side_turn() {
  retry_at_.reset();
  inner_.close();
  begin_speech();
  realtime::response_request request;
  request.instructions = begun_->config.instructions;
  item asked;
  asked.content.emplace_back().text =
      "Note from the application, which the user cannot hear. Tell the user, in your own words:\n" +
      remarks_.front().content;
  remarks_.pop_front();
  auto context = history_.snapshot();
  context.push_back(std::make_shared<const item>(std::move(asked)));
  note_it(note::what::side_turn);
  side_turn_ = side_turn{std::make_shared<const realtime::chat_turn>(std::move(request), std::move(context),
                                                                     terms_.voices, begun_->config.voice_name)};
  open(mode::chat, {});
}

std::optional<time_point> machine::remark_due() const {
  if (remarks_.empty() || speaking() || !started_) return std::nullopt;
  const auto& came = remarks_.front().came;
  const auto due = std::max(retry_at_.value_or(came), finder_.in_turn() ? came + most_patience : came);
  return std::max(due, opens_at_.value_or(due));
}

/// When the duplex session is to be opened again.
std::optional<time_point> machine::reopening_due() const {
  if (!started_ || side_turn_) return std::nullopt;
  auto due = retry_at_.value_or(*started_);
  if (inner_.is_open()) {
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
    inner_.close();
    retry_at_.reset();
    open_duplex();
  }
  if (!inner_.is_duplex())
    inner_.keep_last(preroll_samples);
  else if (inner_.ready())
    inner_.feed(inner_.speaks());
}

} // namespace parley::protocol::openai::live
