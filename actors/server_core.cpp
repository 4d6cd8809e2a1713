#include "actors/server_core.hpp"

#include "actors/cluster/actor_threads.hpp"
#include "actors/cluster/peer_link.hpp"
#include "actors/frame_handle.hpp"
#include "actors/logger.hpp"
#include "actors/queue/queue_manager.hpp"
#include "actors/realtime/realtime_session.hpp"
#include "actors/reports/demo_report.hpp"
#include "actors/reports/metrics_report.hpp"
#include "actors/reports/status_report.hpp"
#include "actors/secure_random.hpp"
#include "actors/session/late_handle.hpp"
#include "actors/unix_time.hpp"
#include "actors/worker/gpu_worker.hpp"
#include "base/answered.hpp"
#include "base/assert.hpp"
#include "config/load.hpp"
#include "protocol/openai/beta/beta_adapter.hpp"
#include "protocol/openai/live/machine.hpp"
#include "protocol/openai/realtime/machine.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace parley::actors {

namespace {

/// Extra time after the grace period of a drain, for closes still in progress.
constexpr std::chrono::seconds drain_margin{5};

/// Enough that nobody waits long for another owner's frame, and few beside the engines.
std::size_t large_frame_threads() {
  return std::clamp(std::thread::hardware_concurrency() / 4, 2u, 8u);
}

/// A handle without a session, for a connection that is being refused.
class deaf_handle final : public session_handle {
public:
  void text(std::string&&) override {}
  void binary() override {}
  void gone() override {}
};

/// Of the quotas in tokens the one of which the fewest are left.
std::optional<protocol::openai::realtime::token_limit> least_tokens(std::span<const usage_account::left> rests) {
  const usage_account::left* least = nullptr;
  for (const auto& each : rests)
    if (!each.in_seconds && (least == nullptr || each.rest < least->rest)) least = &each;
  if (least == nullptr) return std::nullopt;
  return protocol::openai::realtime::token_limit{static_cast<std::int64_t>(least->limit),
                                                 static_cast<std::int64_t>(least->rest),
                                                 static_cast<double>(least->renews_in.count())};
}

} // namespace

server_core::server_core(const config::settings& settings, worker_table::watcher watch, nodes others,
                         std::function<void(std::string)> broken)
    : nodes_(others), limits_(limits_from(settings)), openai_(openai_from(settings)), broken_(std::move(broken)),
      board_(std::move(watch)),
      system_(prepare(config_, others == nodes::may_join ? std::optional(silence_from(settings)) : std::nullopt)),
      large_frames_(large_frame_threads()),
      budgets_({settings.limits.kept_bytes, settings.limits.kept_bytes_per_client}) {
  surroundings_.workers = &board_;
  surroundings_.transcribes = openai_.transcribes;
  surroundings_.open = [this](connection_info inner, std::shared_ptr<guest_link> to) {
    return admit_guest(std::move(inner), std::move(to));
  };
  surroundings_.kept = budgets_.kept(); // of all dialects together
  surroundings_.owners = &budgets_;
  surroundings_.legacy_extras = settings.protocol.legacy_extras;
  surroundings_.replay_bytes = settings.limits.journal_bytes;
  surroundings_.resume_bytes = settings.limits.resume_bytes;
  if (!settings.record.dir.empty()) start_recording(settings);
  if (!settings.journal.dir.empty()) start_logs(settings);
  queue_ = system_.spawn<queue_manager>(
      queue_from(settings), waiting_from(settings),
      queue_manager::surroundings{board_, surroundings_.registry, surroundings_.counted, surroundings_.last_key});
  const auto without = [this](std::string what) {
    if (stopping_) return;
    note_fault(what);
    if (broken_) broken_(std::move(what));
  };
  queue_->attach_functor([this, without](const caf::error&) {
    board_.close(closed_for::queue_ended);
    without("the queue manager has ended");
  });
  if (others == nodes::none) return;
  links_.emplace(system_);
  links_->broker()->attach_functor([without](const caf::error&) { without("the links between nodes have ended"); });
  silence_ = silence_from(settings);
  rejoin_ = rejoin_from(settings);
  registry_ = std::make_unique<restarted<node_registry_actor>>(system_, "the registry of workers", [this] {
    return system_.spawn<node_registry>(queue_, surroundings_.logs.get(), registry_memory_);
  });
}

void server_core::note_fault(const std::string& what) {
  log()->error("{}: this process should be started again", what);
  const std::lock_guard lock(fault_mutex_);
  if (fault_.empty()) fault_ = what;
}

std::string server_core::fault() const {
  const std::lock_guard lock(fault_mutex_);
  return fault_;
}

void server_core::start_recording(const config::settings& settings) {
  auto& counted = surroundings_.counted.recording();
  try {
    surroundings_.recordings = std::make_unique<recorder_feed>(settings.record.queue_bytes, counted);
    archive_ = std::make_unique<archive>(system_, settings, *surroundings_.recordings, counted,
                                         [this](const std::string& what) {
                                           if (!stopping_) note_fault(what);
                                         });
  } catch (const std::exception& problem) {
    throw config::settings_error("record.dir: " + std::string(problem.what()));
  }
}

void server_core::start_logs(const config::settings& settings) {
  log_store::options with;
  with.folder = settings.journal.dir;
  with.sync = settings.journal.sync;
  with.most_waiting = settings.journal.queue_bytes;
  with.most_copied = settings.journal.copy_bytes;
  with.resume = limits_.resume;
  with.longest = std::max({limits_.audio, limits_.video, limits_.chat});
  with.open_for_clients = [this] { return !loading(); };
  with.node = secure_random();
  with.disowned = [this](const std::string& id) {
    const auto found = surroundings_.registry.find(id);
    if (found.session) caf::anon_send(*found.session, close_request{"taken_up_elsewhere"});
  };
  try {
    surroundings_.logs = std::make_unique<log_store>(std::move(with), surroundings_.counted.logs());
  } catch (const std::exception& problem) {
    throw config::settings_error("journal.dir: " + std::string(problem.what()));
  }
}

server_core::~server_core() {
  stop();
}

void server_core::stop() {
  if (std::exchange(stopped_, true)) return;
  stopping_ = true;
  for (const auto& connection : realtime_.all()) caf::anon_send_exit(connection, caf::exit_reason::user_shutdown);
  if (surroundings_.logs) surroundings_.logs->stop_taking_up();
  for (const auto& session : surroundings_.registry.all())
    caf::anon_send_exit(session, caf::exit_reason::user_shutdown);
  for (const auto& worker : workers_) caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
  if (peers_) peers_->stop();
  if (registry_) registry_->stop();
  caf::anon_send_exit(queue_, caf::exit_reason::user_shutdown);
  links_.reset();
  if (archive_) archive_->stop();
  large_frames_.stop();
  system_.await_all_actors_done();
  surroundings_.clock.stop();
  queue_ = nullptr;
  workers_.clear();
  surroundings_.logs.reset();
  if (surroundings_.recordings) surroundings_.recordings->lead_nowhere();
}

void server_core::add_worker(std::string device, engine_factory make) {
  const worker_key key = workers_.size() + 1;
  workers_.push_back(system_.spawn<gpu_worker>(std::move(make)));
  caf::anon_send(queue_, worker_joins{workers_.back(), key, {}, std::move(device)});
  caf::anon_send(workers_.back(), worker_start{queue_, key});
}

void server_core::copy_to_peers(std::vector<node_dialer> peers, std::string name) {
  PARLEY_ASSERT(links_ && !peers.empty(), "there are peers, and nodes may join");
  if (!surroundings_.logs) throw config::settings_error("nodes.peers needs journal.dir");
  const peer_link_options options{std::move(name), silence_, rejoin_};
  peers_ = std::make_unique<restarted<peer_link_actor>>(
      system_, "the link to the gateway that keeps copies", [this, options, peers = std::move(peers)] {
        return caf::actor_cast<peer_link_actor>(system_.spawn<peer_link>(options, *surroundings_.logs, peers));
      });
}

void server_core::admit_node(node_socket socket, const std::string& address) {
  log()->debug("a node connects from {}", address);
  PARLEY_ASSERT(links_, "nodes may join");
  if (const auto registry = registry_->get()) links_->serve(std::move(socket), registry);
}

void server_core::drain() {
  board_.close(closed_for::shutdown);
  draining_ = true;
  if (surroundings_.logs) surroundings_.logs->stop_taking_up();
  // In this order: a client that has no session yet then finds the queue closed.
  caf::anon_send(queue_, drain_request{});
  for (const auto& session : surroundings_.registry.all()) caf::anon_send(session, drain_request{});
  for (const auto& connection : realtime_.all()) caf::anon_send(connection, drain_request{});
  if (!surroundings_.registry.wait_until_none_lives(limits_.drain + drain_margin))
    log()->warn("{} sessions did not end in time", live_sessions());
}

session_terms server_core::terms() const {
  session_terms terms{limits_, {}};
  if (const auto engine = board_.engine()) {
    terms.limits.context_tokens = engine->context_tokens;
    terms.limits.unit = engine->unit;
    terms.able = {engine->hears, engine->sees, engine->speaks};
  }
  return terms;
}

std::unique_ptr<session_handle> server_core::admit(connection_info info, std::shared_ptr<client_link> link) {
  if (info.resume_token) return admit_again(info, std::move(link));
  if (info.realtime) return admit_realtime(std::move(info), std::move(link));
  auto strand = large_frames_.open(owner_of(info));
  return std::make_unique<frame_handle<session_actor>>(
      system_.spawn<session>(surroundings_, terms(), queue_, std::move(info), std::move(link)), std::move(strand),
      small_message_bytes);
}

/// A session whose client is one of ours.
std::unique_ptr<guest_handle> server_core::admit_guest(connection_info info, std::shared_ptr<guest_link> link) {
  auto strand = large_frames_.open(owner_of(info));
  return std::make_unique<event_handle>(
      system_.spawn<session>(surroundings_, terms(), queue_, std::move(info), std::move(link)), std::move(strand));
}

/// Whether connections may have transcripts of what their users say.
bool server_core::can_transcribe() const {
  return openai_.transcribes && terms().able.hears;
}

/// Whether conversations in full duplex may have functions called.
bool server_core::can_delegate() const {
  return limits_.delegations > 0 && terms().able.hears;
}

std::unique_ptr<protocol::openai::adapter> server_core::adapter_for(const connection_info& info) {
  PARLEY_ASSERT(info.realtime.has_value(), "it speaks such a dialect");
  const auto owner = budgets_.of(owner_of(info), steady_now());
  std::function<bool(protocol::time_point)> may_start;
  if (info.starts) may_start = [starts = info.starts](protocol::time_point now) { return starts->left(now); };
  if (info.realtime->spoken == openai_dialect::live) {
    protocol::openai::live::machine_terms terms;
    terms.longest = limits_.audio;
    terms.slot_wait = openai_.slot_wait;
    terms.barge_in = openai_.live_barge_in;
    terms.transcribes = can_transcribe();
    terms.delegates = can_delegate();
    terms.voices = openai_.voices;
    terms.detection = openai_.detection;
    terms.owner = owner;
    terms.may_start = std::move(may_start);
    terms.backlog_units = limits_.failover_units;
    terms.context_tokens = limits_.context_tokens;
    return std::make_unique<protocol::openai::live::machine>(
        protocol::openai::live::origin{info.accepted, unix_ms() / 1000, info.realtime->session.value_or("")},
        std::move(terms), secure_random);
  }
  protocol::openai::realtime::machine_terms terms;
  terms.longest = limits_.audio;
  terms.slot_wait = openai_.slot_wait;
  terms.server_vad_is_duplex = openai_.server_vad_is_duplex;
  terms.duplex_calls = openai_.duplex_tools && can_delegate();
  terms.transcribes = can_transcribe();
  terms.voices = openai_.voices;
  terms.duplex_idle = limits_.chat_idle;
  terms.detection = openai_.detection;
  terms.owner = owner;
  terms.may_start = std::move(may_start);
  terms.backlog_units = limits_.failover_units;
  if (info.account) terms.tokens_left = [account = info.account] { return least_tokens(account->rests()); };
  protocol::openai::realtime::origin from{
      info.realtime->model, info.realtime->served, info.accepted, unix_ms() / 1000, info.realtime->session.value_or(""),
      info.realtime->call};
  auto machine = std::make_unique<protocol::openai::realtime::machine>(std::move(from), terms, secure_random);
  const bool beta = info.realtime->spoken == openai_dialect::realtime_beta;
  return std::make_unique<protocol::openai::beta::beta_adapter>(std::move(machine), beta);
}

namespace {

/// Of a connection that speaks a dialect of OpenAI's. The sound of a call is worked on where it comes in.
class realtime_handle final : public frame_handle<realtime_actor> {
public:
  using frame_handle::frame_handle;
  void sound(std::vector<float>&& samples) override { pass_here(session(), client_sound{std::move(samples)}); }
};

} // namespace

std::unique_ptr<session_handle> server_core::admit_realtime(connection_info info, std::shared_ptr<client_link> link) {
  auto machine = adapter_for(info);
  auto strand = large_frames_.open(owner_of(info));
  return std::make_unique<realtime_handle>(
      system_.spawn<realtime_session>(realtime_, surroundings_.clock, surroundings_.counted, std::move(machine),
                                      surroundings_.open, surroundings_.recordings.get(), std::move(info),
                                      std::move(link)),
      std::move(strand), small_openai_bytes);
}

std::unique_ptr<session_handle> server_core::admit_again(const connection_info& info,
                                                         std::shared_ptr<client_link> link) {
  PARLEY_ASSERT(info.resume_token.has_value(), "whoever comes back says what it claims");
  const auto offer =
      std::make_shared<resume_request>(++surroundings_.last_link, std::move(link), info.remote, surroundings_.counted);
  const auto seen = protocol::read_event_id(info.last_event_id);
  if (!seen) {
    offer->refuse(seen.error());
    return std::make_unique<deaf_handle>();
  }
  log_store::claim claim{protocol::sanitise_session_id(info.session_id.value_or("")), info.key, *info.resume_token};
  const bool left = surroundings_.logs && surroundings_.logs->holds(claim.session_id);
  // At two gateways, two owners may have chosen the same id; here it belongs to the one whose session lives.
  const auto same_id = surroundings_.registry.find(claim.session_id);
  const bool taken = same_id.session && same_id.key != claim.key;
  // In this order: a session that is being taken up lives before it is no longer left.
  const auto owner = owner_of(info);
  if (auto live = offer_to_live(claim, *seen, offer, owner)) return live;
  // Its slot would not wait until the model is loaded.
  const bool later = surroundings_.logs && !taken && (draining_ || (left && loading()));
  if (left && !taken && !later) return take_up(std::move(claim), *seen, offer, info, owner);
  offer->refuse(later ? protocol::server_restarts() : protocol::no_such_claim());
  return std::make_unique<deaf_handle>();
}

/// Null if no such session lives.
std::unique_ptr<session_handle> server_core::offer_to_live(const log_store::claim& claim, std::uint64_t seen,
                                                           const std::shared_ptr<resume_request>& offer,
                                                           const std::string& owner) {
  const auto session = surroundings_.registry.offer(claim.session_id, claim.key, offer);
  if (!session) return nullptr;
  caf::anon_send(*session, link_offer{offer, {claim.token, seen}});
  return std::make_unique<frame_handle<session_actor>>(*session, large_frames_.open(owner), small_message_bytes,
                                                       offer->number());
}

/// A session of an earlier process: its log is read on another thread.
std::unique_ptr<session_handle> server_core::take_up(log_store::claim claim, std::uint64_t seen,
                                                     const std::shared_ptr<resume_request>& offer,
                                                     const connection_info& info, const std::string& owner) {
  rebuild_terms terms;
  terms.resume_bytes = surroundings_.resume_bytes;
  terms.most_replay_bytes = surroundings_.replay_bytes;
  terms.legacy_extras = surroundings_.legacy_extras;
  terms.shown_token = claim.token;
  terms.fresh_tokens = [random = protocol::random_source(secure_random)]() mutable {
    return protocol::make_resume_token(random);
  };
  auto late = std::make_shared<late_session>();
  auto done = [this, claim, seen, offer, owner, reservation = info.reservation, account = info.account,
               late](std::optional<log_store::taken> found) {
    try {
      // Without `found`, an earlier connection may have taken it up meanwhile.
      if (found) system_.spawn<session>(surroundings_, queue_, std::move(*found), reservation, account);
    } catch (const std::exception& problem) {
      log()->error("a session of an earlier process could not be started: {}", problem.what());
    }
    auto handle = offer_to_live(claim, seen, offer, owner);
    if (!handle) offer->refuse(protocol::no_such_claim());
    late->found(std::move(handle));
  };
  if (surroundings_.logs->take_up(std::move(claim), std::move(terms), std::move(done)))
    return std::make_unique<late_handle>(std::move(late));
  offer->refuse(protocol::server_restarts());
  return std::make_unique<deaf_handle>();
}

/// Without a queue manager, the answer is about the workers alone.
void server_core::ask(std::function<void(const server_snapshot&)> done) {
  auto tell = base::answered<const server_snapshot*>(
      [this, done = std::move(done)](const server_snapshot* now) {
        if (now) return done(*now);
        server_snapshot alone;
        alone.workers = board_.all();
        done(alone);
      },
      nullptr);
  caf::anon_send(queue_, snapshot_request{[tell = std::move(tell)](const server_snapshot& now) { tell(&now); }});
}

void server_core::status(std::function<void(std::string json)> done, status_part part) {
  ask([done = std::move(done), part](const server_snapshot& now) {
    switch (part) {
    case status_part::all: return done(status_report(now));
    case status_part::workers: return done(demo_workers(now));
    case status_part::queue: return done(demo_queue(now, unix_ms()));
    }
  });
}

void server_core::metrics(std::function<void(std::string text)> done) {
  ask([this, done = std::move(done)](const server_snapshot& now) { done(metrics_report(now, surroundings_.counted)); });
}

std::string server_core::sessions(const principal& who) {
  auto live = surroundings_.registry.list();
  if (!who.sees_all) std::erase_if(live, [&](const auto& each) { return each.whose.key != who.key; });
  return sessions_report(live, steady_now());
}

void server_core::close_session(std::string id, std::string reason, principal who,
                                std::function<void(close_answer)> done) {
  const auto found = surroundings_.registry.find(id);
  if (!found.known) return done(close_answer::unknown);
  if (!who.sees_all && found.key != who.key) return done(close_answer::forbidden);
  if (found.session) caf::anon_send(*found.session, close_request{std::move(reason)});
  done(close_answer::closed);
}

void server_core::close_sessions_of(const std::string& key, const std::string& reason) {
  for (const auto& connection : realtime_.of_key(key)) caf::anon_send(connection, close_request{reason});
  for (const auto& session : surroundings_.registry.of_key(key)) caf::anon_send(session, close_request{reason});
}

void server_core::move_session(std::string id, std::function<void(bool known)> done) {
  const auto found = surroundings_.registry.find(id);
  if (found.session) caf::anon_send(*found.session, move_request{});
  done(found.session.has_value());
}

void server_core::drain_worker(std::uint64_t id, bool drain, std::function<void(bool known)> done) {
  caf::anon_send(queue_, worker_drain{id, drain, base::answered<bool>(std::move(done), false)});
}

} // namespace parley::actors
