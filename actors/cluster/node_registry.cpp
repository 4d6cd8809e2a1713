#include "actors/cluster/node_registry.hpp"

#include "actors/cluster/copy_receiver.hpp"
#include "actors/log.hpp"
#include "actors/log_exceptions.hpp"

#include <algorithm>
#include <utility>

namespace parley::actors {

node_registry::node_registry(caf::actor_config& config, queue_actor queue, journal_store* journals)
    : node_registry_actor::base(config), queue_(std::move(queue)), journals_(journals) {}

node_registry::behavior_type node_registry::make_behavior() {
  log_exceptions(this);
  set_down_handler([this](const caf::down_msg& down) { gone(down.source); });
  return {[this](const node_hello& hello) { join(hello); }, [this](const peer_hello& hello) { keep_copies(hello); }};
}

void node_registry::on_exit() {
  here_.clear();
  queue_ = nullptr;
}

void node_registry::join(const node_hello& hello) {
  const auto answer = [&](node_answer what, std::string reason) {
    log()->warn("worker of {}: {}", hello.name, reason);
    send(hello.member, node_verdict{what, 0, std::move(reason)});
  };
  if (std::any_of(here_.begin(), here_.end(), [&](const auto& each) { return each.second == hello.worker; }))
    return answer(node_answer::not_yet, "its last link is still being taken down");
  if (fingerprint_.empty()) {
    model_ = hello.info.model;
    fingerprint_ = hello.info.fingerprint;
  }
  if (hello.info.fingerprint != fingerprint_) {
    return answer(node_answer::refused, "refused: it serves another model, " + hello.info.model + " (" +
                                            hello.info.fingerprint + "); this gateway's is " + model_ + " (" +
                                            fingerprint_ + ")");
  }
  const auto key = ++last_key_;
  log()->info("worker {} joins: {}, {} slots on {}", key, hello.name, hello.info.slots, hello.info.device);
  here_[key] = hello.worker;
  monitor(hello.worker);
  send(queue_, worker_joins{hello.worker, key, hello.name, hello.info.device});
  send(hello.worker, worker_start{queue_, key});
  send(hello.member, node_verdict{node_answer::welcome, key, {}});
}

void node_registry::keep_copies(const peer_hello& hello) {
  if (!journals_) return send(hello.sender, peer_refused{"it has no journal.dir"});
  // It has dialled itself: that allows one list of peers for all gateways.
  if (hello.node == journals_->node()) return send(hello.sender, peer_refused{"it is this gateway itself"});
  spawn<copy_receiver, caf::linked>(*journals_, hello);
}

void node_registry::gone(const caf::actor_addr& who) {
  std::erase_if(here_, [&](const auto& each) { return each.second == who; });
}

} // namespace parley::actors
