#include "actors/cluster/node_registry.hpp"

#include "actors/cluster/copy_receiver.hpp"
#include "actors/log_exceptions.hpp"
#include "actors/logger.hpp"
#include "actors/speaks_for.hpp"

#include <algorithm>
#include <utility>

namespace parley::actors {

namespace {

/// Bounds for nodes that join without an end.
constexpr std::size_t most_workers = 1024;
constexpr std::size_t most_senders = 64; ///< gateways whose logs are kept

} // namespace

node_registry::node_registry(caf::actor_config& config, queue_actor queue, log_store* logs, registry_memory& memory)
    : node_registry_actor::base(config), queue_(std::move(queue)), logs_(logs), memory_(memory) {}

node_registry::behavior_type node_registry::make_behavior() {
  log_exceptions(this);
  set_down_handler([this](const caf::down_msg& down) { gone(down.source); });
  return {
      [this](const node_hello& hello) {
        const auto& sender = current_sender();
        if (speaks_for(sender, hello.worker.node()) && speaks_for(sender, hello.member.node())) join(hello);
      },
      [this](const peer_hello& hello) {
        if (speaks_for(current_sender(), hello.sender.node())) keep_copies(hello);
      },
  };
}

void node_registry::on_exit() {
  for (const auto& each : std::exchange(receivers_, {})) caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
  here_.clear();
  queue_ = nullptr;
}

void node_registry::join(const node_hello& hello) {
  const auto answer = [&](node_answer what, std::string reason) {
    log()->warn("worker of {}: {}", hello.name, reason);
    send(hello.member, node_verdict{what, 0, std::move(reason)});
  };
  // A process has one worker.
  if (std::any_of(here_.begin(), here_.end(),
                  [&](const auto& each) { return each.second.node() == hello.worker.node(); }))
    return answer(node_answer::not_yet, "its last link is still being taken down");
  if (here_.size() >= most_workers) return answer(node_answer::not_yet, "there are too many workers");
  auto& [last_key, model, fingerprint] = memory_;
  if (fingerprint.empty()) {
    model = hello.info.model;
    fingerprint = hello.info.fingerprint;
  }
  if (hello.info.fingerprint != fingerprint) {
    return answer(node_answer::refused, "refused: it serves another model, " + hello.info.model + " (" +
                                            hello.info.fingerprint + "); this gateway's is " + model + " (" +
                                            fingerprint + ")");
  }
  const auto key = ++last_key;
  log()->info("worker {} joins: {}, {} slots on {}", key, hello.name, hello.info.slots, hello.info.device);
  here_[key] = hello.worker;
  monitor(hello.worker);
  send(queue_, worker_joins{hello.worker, key, hello.name, hello.info.device});
  send(hello.worker, worker_start{queue_, key});
  send(hello.member, node_verdict{node_answer::welcome, key, {}});
}

void node_registry::keep_copies(const peer_hello& hello) {
  if (!logs_) return send(hello.sender, peer_refused{"it has no journal.dir"});
  // It has dialled itself: that allows one list of peers for all gateways.
  if (hello.node == logs_->node()) return send(hello.sender, peer_refused{"it is this gateway itself"});
  if (receivers_.size() >= most_senders) return send(hello.sender, peer_refused{"it keeps the copies of too many"});
  receivers_.push_back(spawn<copy_receiver>(*logs_, hello));
  monitor(receivers_.back());
}

void node_registry::gone(const caf::actor_addr& who) {
  std::erase_if(here_, [&](const auto& each) { return each.second == who; });
  std::erase_if(receivers_, [&](const auto& each) { return each == who; });
}

} // namespace parley::actors
