#include "actors/worker/gpu_worker.hpp"

#include "actors/capacity/engine_counters.hpp"
#include "actors/deadline_timer.hpp"
#include "actors/log_exceptions.hpp"
#include "actors/logger.hpp"
#include "actors/speaks_for.hpp"

#include <algorithm>
#include <utility>

namespace parley::actors {

namespace {

/// Each session has one running command and at most one waiting, besides a cut and a close.
constexpr std::size_t max_commands = 4096;

/// Minimum time between two reports of the load.
constexpr std::chrono::milliseconds report_gap{500};

/// The counts between two reports.
inference::engine_capacity since(const inference::engine_capacity& then, inference::engine_capacity now) {
  for (const auto& counter : engine_counters) now.*counter.value -= then.*counter.value;
  return now;
}

} // namespace

gpu_worker::gpu_worker(caf::actor_config& config, engine_factory make)
    : worker_actor::base(config), make_(std::move(make)), box_(std::make_shared<latest_capacity>()) {}

gpu_worker::behavior_type gpu_worker::make_behavior() {
  log_exceptions(this);
  set_down_handler([this](const caf::down_msg& down) { peer_gone(down.source); });
  const worker_actor self(this);
  engine_ = std::make_unique<engine_thread>(
      std::move(make_),
      engine_thread::listener{
          [self](const inference::engine_info& info) { caf::anon_send(self, engine_up{info}); },
          [self](conversation::event&& event) { caf::anon_send(self, engine_event{std::move(event)}); },
          [self](std::string reason) { caf::anon_send(self, engine_down{std::move(reason)}); },
          [self, box = box_](const inference::engine_capacity& now, double busy_s) {
            if (box->put({now, busy_s})) caf::anon_send(self, capacity_measured{});
          },
      },
      max_commands);
  return {
      [this](engine_open& message) { open(message); },
      [this](engine_command& message) { order(message); },
      [this](const slot_orphaned& message) { free_orphan(message); },
      [this](const worker_start& message) { start(message); },
      [this](const worker_stop&) { stop(); },
      [this](const engine_up& message) {
        info_ = message.info;
        log()->info("{} on {}, {} slots of {} tokens", info_->model, info_->device, info_->slots,
                    info_->context_tokens);
        offer();
      },
      [this](const capacity_measured&) { measure(); },
      [this](engine_event& message) {
        if (!current_sender()) route(message); // from its engine's thread
      },
      [this](const engine_down& message) { quit(caf::make_error(caf::sec::runtime_error, message.reason)); },
      [this](const report_due&) {
        report_waits_ = false;
        report();
      },
  };
}

void gpu_worker::on_exit() {
  clients_.clear();
  gateways_.clear();
  if (!engine_) return;
  engine_->stop();
  // The destructor of engine_thread waits for the pass in progress, which no scheduler thread may do.
  using held = std::shared_ptr<std::unique_ptr<engine_thread>>;
  system().spawn<caf::detached>([](const held& last) { last->reset(); },
                                std::make_shared<std::unique_ptr<engine_thread>>(std::move(engine_)));
}

// ---- gateways

void gpu_worker::start(const worker_start& message) {
  if (!speaks_for(current_sender(), message.queue.node())) return;
  monitor(message.queue);
  // Counts from before the first gateway joined belong to that one.
  const bool first = reported_ == std::chrono::steady_clock::time_point();
  capacity_ = box_->take();
  gateways_.push_back({message.queue, message.key, -1, first ? latest_capacity::measured() : capacity_});
  offer();
  report();
}

/// The engine has measured that it can take more or fewer sessions than it thought.
void gpu_worker::change(int slots) {
  if (!info_ || info_->slots == slots) return;
  log()->debug("{} slots, after {}", slots, info_->slots);
  info_->slots = slots;
  offer();
}

void gpu_worker::measure() {
  if (const int slots = box_->slots(); slots > 0) change(slots);
  report();
}

/// Reports the load to every gateway, now or as soon as allowed. Until then the newest report stays in
/// `latest_capacity`, and the engine wakes nobody for more.
void gpu_worker::report() {
  if (!info_ || gateways_.empty() || report_waits_) return;
  const auto now = steady_now();
  if (const auto due = reported_ + report_gap; now < due) {
    report_waits_ = true;
    return delayed_send(this, due - now, report_due{});
  }
  reported_ = now;
  capacity_ = box_->take();
  for (const auto& to : gateways_)
    send(to.queue, capacity_report{to.key,
                                   {since(to.joined.capacity, capacity_.capacity), capacity_.busy_s - to.joined.busy_s,
                                    prompts_.keys()}});
}

void gpu_worker::stop() {
  stopping_ = true;
  for (const auto& to : gateways_) send(to.queue, worker_leaves{to.key});
  if (clients_.empty()) quit(caf::exit_reason::user_shutdown);
}

/// Tells every gateway that does not know it yet how many slots it may fill: all except those that other gateways hold.
void gpu_worker::offer() {
  if (!info_) return;
  const auto& whole = *info_;
  for (auto& to : gateways_) {
    const auto others = std::count_if(clients_.begin(), clients_.end(),
                                      [&](const auto& each) { return each.second.session.node() != to.queue.node(); });
    auto info = whole;
    info.slots = std::max(0, whole.slots - static_cast<int>(others));
    if (std::exchange(to.offered, info.slots) != info.slots) send(to.queue, slots_offered{to.key, std::move(info)});
  }
}

void gpu_worker::peer_gone(const caf::actor_addr& who) {
  std::erase_if(gateways_, [&](const gateway_client& each) { return each.queue == who; });
  for (auto& [id, of] : clients_)
    if (of.session == who) close(id, of);
}

// ---- sessions

void gpu_worker::open(engine_open& message) {
  if (!speaks_for(current_sender(), message.session.node())) return;
  const auto id = session_of(message.order);
  if (stopping_ || clients_.contains(id) ||
      (info_ && clients_.size() >= static_cast<std::size_t>(std::max(0, info_->slots))))
    return send(message.session, open_denied{id});
  monitor(message.session);
  if (const auto prompt = prompt_of(message.order)) prompts_.note(*prompt);
  const auto session = message.session;
  clients_[id] = client{std::move(message.session), message.ticket};
  offer();
  if (!engine_->post(std::move(message.order))) {
    forget(clients_.find(id));
    send(session, engine_event{conversation::failed{id, 0, conversation::failure_kind::inference,
                                                    "the engine's command queue is full"}});
  }
}

void gpu_worker::order(engine_command& message) {
  if (!speaks_for(current_sender(), message.session.node())) return;
  const auto id = session_of(message.order);
  const auto found = clients_.find(id);
  if (found != clients_.end() && found->second.session != message.session) return;
  if (std::holds_alternative<conversation::close_session>(message.order)) {
    // A session that failed to open, or was already closed, counts as closed.
    if (found == clients_.end()) return send(message.session, engine_event{conversation::closed{id}});
    return close(id, found->second);
  }
  if (found == clients_.end() || found->second.closing) return;
  const auto number = answer_number(message.order);
  if (!engine_->post(std::move(message.order)) && number)
    send(message.session, engine_event{conversation::failed{id, *number, conversation::failure_kind::inference,
                                                            "the engine's command queue is full"}});
}

void gpu_worker::close(conversation::session_id id, client& of) {
  if (std::exchange(of.closing, true)) return;
  engine_->post(conversation::close_session{id});
}

void gpu_worker::route(engine_event& message) {
  const auto found = clients_.find(session_of(message.event));
  if (found == clients_.end()) return;
  auto& to = found->second;
  const auto session = to.session;
  const bool failed_open = to.opening && std::holds_alternative<conversation::failed>(message.event);
  const bool closing = to.closing;
  to.opening = false;
  // A failed open leaves nothing in the engine, so a close sent at the same time is done, too.
  if (failed_open || std::holds_alternative<conversation::closed>(message.event)) forget(found);
  const auto id = session_of(message.event);
  send(session, std::move(message));
  if (failed_open && closing) send(session, engine_event{conversation::closed{id}});
}

void gpu_worker::forget(clients::iterator which) {
  const auto gone = std::move(which->second);
  clients_.erase(which);
  demonitor(gone.session.address());
  if (gone.orphaned) free(gone);
  if (stopping_ && clients_.empty()) return quit(caf::exit_reason::user_shutdown);
  offer();
}

void gpu_worker::free(const client& gone) {
  for (const auto& to : gateways_)
    if (to.queue.node() == gone.session.node()) send(to.queue, orphan_closed{to.key, gone.ticket});
}

void gpu_worker::free_orphan(const slot_orphaned& message) {
  if (!speaks_for(current_sender(), message.queue.node())) return;
  for (auto& [id, of] : clients_) {
    if (of.ticket != message.ticket || of.session.node() != message.queue.node()) continue;
    of.orphaned = true;
    return close(id, of);
  }
  for (const auto& to : gateways_)
    if (to.queue == message.queue) send(to.queue, orphan_closed{to.key, message.ticket});
}

} // namespace parley::actors
