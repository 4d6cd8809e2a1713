#include "actors/session/session.hpp"

#include "actors/execution.hpp"
#include "actors/frame_handle.hpp"
#include "actors/log/id_source.hpp"
#include "actors/log/token_hash.hpp"
#include "actors/log_exceptions.hpp"
#include "actors/logger.hpp"
#include "actors/secure_random.hpp"
#include "actors/session/quota_forecast.hpp"
#include "actors/unix_time.hpp"
#include "protocol/codec/event_writer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace parley::actors {

namespace {

std::string_view word_for(protocol::dialect spoken) {
  switch (spoken) {
  case protocol::dialect::undecided: return "undecided";
  case protocol::dialect::current: return "current";
  case protocol::dialect::legacy: return "legacy";
  }
  return "";
}

/// How long a session may go on after its key's quota is used up.
constexpr std::chrono::seconds between_charges{1};

std::int64_t tokens_of(const protocol::usage& used) {
  return used.input_text + used.input_audio + used.input_vision + used.output_text + used.output_audio;
}

/// The reason for a session that was ended from outside.
constexpr std::string_view cut_off = "cut off";

/// The facts of the session's lines in the log, but for who its client is and where its trace.
std::vector<protocol::trace::attribute> attributes_of(const log_facts& facts) {
  std::vector<protocol::trace::attribute> out;
  for (const auto& [name, value] : facts.all())
    if (name != "remote" && name != "trace") out.push_back({"parley." + std::string(name), value});
  return out;
}

std::string_view words_for(protocol::error_code code) {
  switch (code) {
  case protocol::error_code::queue_full: return "too many clients are waiting";
  case protocol::error_code::worker_busy: return "all slots are taken and this server does not queue";
  case protocol::error_code::worker_connect_failed: return "no worker could be reached";
  default: return "no worker can take sessions now";
  }
}

} // namespace

session::session(caf::actor_config& config, session_surroundings& shared, session_terms terms, queue_actor queue,
                 connection_info connection, std::shared_ptr<client_link> link)
    : session_actor::base(config), shared_(shared), connection_(std::move(connection)), link_(std::move(link)),
      meter_(shared.counted), sent_(shared.resume_bytes), id_seed_(secure_random()),
      lease_(*this, std::move(queue), meter_, shared.replay_bytes,
             {shared.last_key, terms.limits.failover.count() > 0 && !connection_.background, connection_.group,
              connection_.key, connection_.background}) {
  protocol::random_source random = secure_random;
  current_id_ = protocol::sanitise_session_id(connection_.session_id.value_or(""));
  if (current_id_.empty()) current_id_ = protocol::make_session_id(random);
  entry_ = shared_.registry.add(this, {connection_.remote, connection_.key, connection_.accepted});
  std::optional<std::string> claimed;
  if (!shared_.logs || !shared_.logs->holds(current_id_))
    claimed = entry_->claim(current_id_, [&] { return shared_.legacy_ids.next(unix_ms()); });
  const bool unique = claimed.has_value();
  legacy_id_ = claimed.value_or("");
  protocol::session_origin origin{connection_.mode, current_id_, legacy_id_, {}, connection_.accepted};
  if (connection_.recording)
    recording_ = connection_.recording;
  else if (unique && shared_.recordings && !connection_.background)
    origin.recording_id = shared_.recordings->take_id(current_id_);
  const auto recording_id = origin.recording_id;
  machine_ =
      std::make_unique<protocol::session_machine>(std::move(origin), terms.limits, terms.able, id_source(id_seed_),
                                                  [random]() mutable { return protocol::make_resume_token(random); });
  const log_session about(current_id_);
  log()->debug("connected from {}{}{}", connection_.remote, connection_.key.empty() ? "" : " with key ",
               connection_.key);
  begin_trace();
  auto first = begin(unique);
  if (recording_id) begin_recording(*recording_id);
  // Here, not when a scheduler thread runs the actor: clients queue in the order in which they are admitted.
  carry_out(std::move(first));
}

/// What the machine does first.
protocol::effects session::begin(bool unique_id) {
  const auto now = steady_now();
  if (!unique_id) return machine_->refuse_duplicate_id(now);
  auto spent = connection_.account && !connection_.background ? connection_.account->spent() : std::nullopt;
  return spent ? machine_->on_quota_spent(std::move(*spent), now) : machine_->start(now);
}

session::behavior_type session::make_behavior() {
  log_exceptions(this, [this] { tell_fault(); });
  set_down_handler([this](const caf::down_msg& down) { forward(lease_.peer_gone(down)); });
  return {
      [this](guest_said& said) {
        if (!handed_back(said, session_actor(this))) take_said(said);
      },
      [this](client_frame& frame) {
        if (!handed_back(frame, session_actor(this))) take_frame(frame);
      },
      [this](const client_binary& of) {
        if (of.link == link_number_) carry_out(machine_->on_binary(steady_now()));
      },
      [this](const client_gone& of) {
        if (of.link == link_number_) lose_client();
      },
      [this](const link_offer& offer) { take_offer(*offer.link, offer.claim); },
      [this](const close_request& request) { carry_out(machine_->on_close_request(request.reason, steady_now())); },
      [this](const queue_update& word) {
        if (!lease_.waits_for(word.ticket)) return;
        carry_out(word.first ? machine_->on_queued(word.place, steady_now())
                             : machine_->on_queue_update(word.place, steady_now()));
      },
      [this](const slot_granted& grant) { forward(lease_.take(grant)); },
      [this](const slot_refused& refusal) { forward(lease_.take(refusal), refusal.code); },
      [this](const slot_lost& news) { forward(lease_.take(news)); },
      [this](const session_fault&) { carry_out(machine_->on_fault(steady_now())); },
      [this](engine_event& event) {
        if (lease_.heeds(current_sender())) take_event(event);
      },
      [this](const open_denied& denial) {
        if (lease_.heeds(current_sender())) forward(lease_.take(denial));
      },
      [this](const trial_granted& grant) { forward(lease_.take(grant)); },
      [this](const move_request& order) {
        if (!order.go)
          lease_.stay();
        else if (active())
          lease_.move();
      },
      [this](const drain_request&) {
        if (can_hand_over()) return hand_over();
        const auto now = steady_now();
        keep(logged::drain{}, now);
        carry_out(machine_->on_drain(now));
      },
      [this](const timer_due&) {
        const auto now = steady_now();
        deadline_timer_.fired(now);
        if (const auto due = machine_->next_deadline(); due && *due <= now) keep(logged::tick{}, now);
        carry_out(machine_->tick(now));
        spend(now);
      },
      [this](const transcript_ready& answer) {
        const auto now = steady_now();
        if (active()) keep(logged::user_turn{answer.heard}, now);
        carry_out(machine_->on_transcript(answer.heard, now));
      },
  };
}

void session::begin_recording(const std::string& id) {
  recording_facts facts;
  facts.id = id;
  facts.legacy_id = legacy_id_;
  facts.key = connection_.key;
  facts.mode = name_of(machine_->kind());
  facts.started_ms = unix_ms();
  facts.folder = utc_date(facts.started_ms) + "/" + id;
  recording_ = std::make_shared<recording_tap>(*shared_.recordings, std::move(facts), connection_.accepted);
}

void session::on_exit() {
  charge(steady_now());
  if (!handed_over_) log_end();
  end_trace();
  durable_.reset();
  if (!link_closed_ && !client_gone_) link_->close(1011, "internal error");
  lease_.leave();
  if (transcription_) caf::anon_send(transcription_, transcripts_unwanted{});
  transcription_ = nullptr;
  for (const auto& offer : entry_->refuse_offers())
    offer->refuse(handed_over_ ? protocol::server_restarts() : protocol::no_such_claim());
  entry_.reset();
  machine_.reset();
  if (recording_ && !connection_.recording) recording_->end(std::string(cut_off));
  recording_.reset();
  sent_.clear(); // a pending timer keeps this object alive
  link_.reset();
  connection_.reservation.reset();
  init_held_.reset();
  init_frame_.reset();
  pending_.clear();
}

/// A handler has thrown, and this actor is about to end: tells the client as much as is still possible.
void session::tell_fault() noexcept {
  try {
    if (!machine_ || !link_) return;
    const log_session about(machine_->id());
    for (auto& effect : machine_->on_fault(steady_now())) {
      if (auto* word = std::get_if<protocol::send>(&effect)) perform(*word);
      if (const auto* close = std::get_if<protocol::close_link>(&effect)) perform(*close);
    }
  } catch (...) {
    log()->error("the fault could not be reported to the client; its connection is closed");
  }
}

/// Whose session it is and where it runs.
void session::describe(log_facts& facts) const {
  if (!connection_.key.empty()) facts.text("key", connection_.key);
  facts.text("remote", connection_.remote);
  facts.text("mode", std::string(name_of(machine_->kind())));
  facts.text("dialect", std::string(connection_.dialect.empty() ? word_for(machine_->spoken()) : connection_.dialect));
  facts.text("transport", std::string(connection_.transport));
  if (connection_.trace) facts.text("trace", protocol::trace::hex(connection_.trace->trace));
  if (const auto worker = meter_.so_far().worker) facts.number("worker", static_cast<std::int64_t>(worker));
}

void session::log_begin() const {
  log_facts facts;
  describe(facts);
  facts.seconds("wait", std::chrono::duration<double>(steady_now() - connection_.accepted).count());
  log()->info("begins");
}

/// From now on its key pays.
void session::begin_charging() {
  if (!connection_.account || connection_.background) return;
  charged_until_ = steady_now();
}

/// What it has used so far was counted in an earlier process.
void session::was_charged() {
  charged_tokens_ = tokens_of(machine_->total());
}

/// What it has used since the last time.
void session::charge(protocol::time_point now) {
  if (!charged_until_) return;
  const auto tokens = tokens_of(machine_->total());
  const std::chrono::duration<double> passed = now - std::exchange(*charged_until_, now);
  connection_.account->charge(passed.count(), tokens - std::exchange(charged_tokens_, tokens));
}

/// The same, and ends it if its key may use no more.
void session::spend(protocol::time_point now) {
  if (!charged_until_) return;
  charge(now);
  if (auto spent = connection_.account->spent()) return carry_out(machine_->on_quota_spent(std::move(*spent), now));
  if (const auto left = quota_forecast(connection_.account->rests(), charged_tokens_, now - connection_.accepted))
    carry_out(machine_->on_quota_low(*left, now));
}

/// What it came to.
void session::sum_up(log_facts& facts) const {
  const auto& did = meter_.so_far();
  describe(facts);
  facts.text("reason", end_reason());
  facts.number("units", did.answered);
  facts.number("late_units", did.late);
  facts.seconds("heard", static_cast<double>(did.heard) / 16'000);
  facts.seconds("spoken", static_cast<double>(did.spoken) / 24'000);
  facts.number("moves", did.moves);
}

/// The actor may be ended from outside before the machine has ended.
std::string session::end_reason() const {
  return machine_->closed_reason().empty() ? std::string(cut_off) : machine_->closed_reason();
}

void session::begin_trace() {
  using namespace protocol::trace;
  if (!connection_.trace || !connection_.trace->to) return;
  span_writer out(connection_.trace, secure_random, {steady_now(), unix_ns()});
  trace_ = std::make_unique<session_trace>(std::move(out), connection_.accepted);
}

void session::end_trace() {
  if (!trace_) return;
  log_facts facts;
  sum_up(facts);
  const auto how = machine_->ended_as();
  std::string_view error;
  if (how == protocol::session_end::backend_error || how == protocol::session_end::error) error = word_of(how);
  if (machine_->state() != protocol::session_state::closed && !handed_over_) error = "cut_off";
  trace_->end(machine_->id(), machine_->kind(), machine_->total(), attributes_of(facts), error, steady_now());
  trace_.reset();
}

void session::log_end() {
  const log_session about(machine_->id());
  const auto used = machine_->total();
  log_facts facts;
  sum_up(facts);
  log()->info("ended: {} after {:.1f} s, {} tokens in, {} out", end_reason(),
              std::chrono::duration<double>(steady_now() - connection_.accepted).count(),
              used.input_text + used.input_audio + used.input_vision, used.output_text + used.output_audio);
  shared_.counted.ended(machine_->kind(), machine_->ended_as(), connection_.key, used);
}

// ---- what comes in

void session::take_frame(client_frame& frame) {
  if (frame.link != link_number_) return;
  const auto text = std::make_shared<const std::string>(std::move(frame.text));
  const auto now = steady_now();
  const auto* init_before = machine_->init().get();
  auto effects = machine_->on_frame(*text, now);
  if (shared_.logs) keep_frame(text, init_before, now);
  if (recording_) recording_->pass(speaker::client, text, media_of_last_frame());
  count_init(init_before);
  carry_out(std::move(effects));
  link_->taken(text->size());
}

/// No such session can be resumed, so nothing of it is kept for another process.
void session::take_said(guest_said& said) {
  const auto now = steady_now();
  const auto* init_before = machine_->init().get();
  std::shared_ptr<const std::string> recorded;
  if (recording_ && said.event) recorded = std::make_shared<const std::string>(protocol::written(*said.event));
  auto effects = machine_->on_event(std::move(said.event), now);
  if (recorded) recording_->pass(speaker::client, std::move(recorded), media_of_last_frame());
  count_init(init_before);
  carry_out(std::move(effects));
}

/// What waits for a slot is held for as long as that takes.
void session::count_init(const void* init_before) {
  if (machine_->state() != protocol::session_state::queued) return init_held_.reset();
  const auto& init = machine_->init();
  if (init == nullptr || init.get() == init_before) return;
  std::size_t bytes = init_frame_ ? init_frame_->size() : 0;
  if (init->voice) bytes += init->voice->size() * sizeof(float);
  if (init->tts_voice && init->tts_voice != init->voice) bytes += init->tts_voice->size() * sizeof(float);
  init_held_.reset();
  init_held_ = shared_.kept.take(owner_of(connection_), bytes);
  if (init_held_) return;
  init_frame_.reset();
  link_->close(1013, "too much is kept for this client");
}

accepted_media session::media_of_last_frame() const {
  if (!machine_->took_input()) return accepted_media::none;
  return machine_->kind() == protocol::mode::chat ? accepted_media::files : accepted_media::samples;
}

void session::lose_client() {
  client_gone_ = true;
  carry_out(machine_->on_gone(steady_now()));
  if (!machine_ || machine_->state() == protocol::session_state::closed) return;
  const log_session about(machine_->id());
  log()->info("its client is gone and may come back");
}

void session::take_offer(resume_request& offer, const protocol::resume_claim& claim) {
  const auto now = steady_now();
  // The connection for which a session is taken up may reach it after a later one, which found it live.
  if (offer.number() < link_number_) {
    entry_->offer_came(offer);
    const auto* token = machine_->token();
    return token && token->opens(claim.token) ? offer.superseded() : offer.refuse(protocol::no_such_claim());
  }
  auto welcome = machine_->on_resume(claim, sent_.oldest(), now);
  if (!welcome) {
    entry_->offer_came(offer);
    return offer.refuse(welcome.error());
  }
  if (!client_gone_) link_->close(1008, std::string(continues_elsewhere));
  link_ = offer.take();
  entry_->offer_came(offer);
  link_number_ = offer.number();
  client_gone_ = false;
  seen_ = claim.last_event_id;
  if (durable_) keep(logged::resumed{hashes_of(*machine_->token())}, now);
  if (machine_->kind() == protocol::mode::chat) link_->became_chat();
  {
    const log_session about(machine_->id());
    log()->info("its client is back, from {}", offer.remote());
  }
  carry_out(std::move(*welcome));
}

void session::take_event(engine_event& event) {
  if (!lease_.concerns(event.event)) return;
  if (lease_.restoring()) return forward(lease_.take_restored(event.event));
  meter_.heard(event.event);
  take_engine_event(std::move(event.event));
}

void session::take_engine_event(conversation::event&& event) {
  const auto now = steady_now();
  // A failed open leaves no engine session behind.
  const bool failed_open =
      std::holds_alternative<conversation::failed>(event) && machine_->state() == protocol::session_state::initializing;
  if (failed_open || std::holds_alternative<conversation::closed>(event)) lease_.engine_ended();
  if (const auto* opened = std::get_if<conversation::opened>(&event)) {
    auto effects = machine_->on_engine(*opened, now);
    begin_log(*opened, now);
    return carry_out(std::move(effects));
  }
  if (durable_) keep(logged::engine_word{event}, now);
  if (trace_) trace_->heard(event, now);
  carry_out(machine_->on_engine(std::move(event), now));
}

void session::trace_lease(lease_event word, protocol::time_point now) {
  const auto worker = static_cast<std::int64_t>(meter_.so_far().worker);
  switch (word) {
  case lease_event::none:
  case lease_event::given_up:
  case lease_event::closed: return;
  case lease_event::granted: return trace_->granted(shared_.workers ? shared_.workers->model() : "", now);
  case lease_event::refused: return trace_->refused(now);
  case lease_event::worker_lost: return trace_->worker_lost(worker, now);
  case lease_event::restored: return trace_->restored(worker, now);
  }
}

/// If the client connected before a model was loaded, these were unknown then. A running session keeps those with which
/// it began.
void session::learn_abilities() {
  if (active() || !shared_.workers) return;
  if (const auto engine = shared_.workers->engine())
    machine_->learn({engine->hears, engine->sees, engine->speaks}, engine->context_tokens, engine->unit);
}

void session::forward(lease_event word, protocol::error_code why) {
  const auto now = steady_now();
  keep(word, now);
  if (trace_) trace_lease(word, now);
  switch (word) {
  case lease_event::none: return;
  case lease_event::granted: learn_abilities(); return carry_out(machine_->on_granted(now));
  case lease_event::refused: return carry_out(machine_->on_refused(why, std::string(words_for(why)), now));
  case lease_event::worker_lost: return carry_out(machine_->on_worker_lost(now));
  case lease_event::given_up: return carry_out(machine_->on_work_lost_twice(now));
  case lease_event::restored: return carry_out(machine_->on_restored(now));
  case lease_event::closed: return carry_out(machine_->on_engine_closed(now));
  }
}

// ---- what goes out

void session::carry_out(protocol::effects&& effects) {
  const on_own_thread here(context());
  std::move(effects.begin(), effects.end(), std::back_inserter(pending_));
  // Status queries must not lag behind what the client has been told.
  if (machine_->state() != protocol::session_state::closed) entry_->update(machine_->kind(), machine_->state());
  if (carrying_out_) return;
  const log_session about(machine_->id());
  carrying_out_ = true;
  while (!pending_.empty())
    for (auto& effect : std::exchange(pending_, {})) std::visit([this](auto& one) { perform(one); }, effect);
  carrying_out_ = false;
  rearm();
}

void session::rearm() {
  lease_.decline_unasked();
  entry_->update(machine_->kind(), machine_->state());
  auto due = machine_->next_deadline();
  if (charged_until_) {
    if (machine_->state() == protocol::session_state::closed) {
      charge(steady_now());
      charged_until_.reset();
    } else {
      due = std::min(due.value_or(protocol::time_point::max()), *charged_until_ + between_charges);
    }
  }
  deadline_timer_.arm(this, due, shared_.clock);
  if (machine_->state() == protocol::session_state::closed) {
    durable_.reset();
    end_trace();
  }
  if (recording_ && !connection_.recording && machine_->state() == protocol::session_state::closed) {
    recording_->became(name_of(machine_->kind()));
    recording_->end(machine_->closed_reason());
  }
  if (machine_->state() != protocol::session_state::closed || !client_gone_) return;
  connection_.reservation.reset();
  if (!machine_->holds_worker()) quit();
}

} // namespace parley::actors
