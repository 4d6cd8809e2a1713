#pragma once

#include "actors/cluster/node_messages.hpp"
#include "actors/log/log_store.hpp"

#include <map>
#include <string>
#include <vector>

namespace parley::actors {

/// What outlives a registry that has to be started again.
struct registry_memory {
  worker_key last_key = 0;
  std::string model; ///< the first worker's model, with its fingerprint
  std::string fingerprint;
};

/// A gateway as seen by worker nodes: checks that a worker gives the same answers as those already here, gives it a
/// key, and introduces it to the queue manager. The first worker decides on the model.
class node_registry : public node_registry_actor::base {
public:
  /// `logs` keeps copies of other gateways' sessions; null = none are kept. It and `memory`, which no other actor uses
  /// meanwhile, must outlive the actor.
  node_registry(caf::actor_config& config, queue_actor queue, log_store* logs, registry_memory& memory);

  const char* name() const override { return "node_registry"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  void join(const node_hello& hello);
  void keep_copies(const peer_hello& hello);
  void gone(const caf::actor_addr& who);

  queue_actor queue_;
  log_store* const logs_;
  registry_memory& memory_;
  std::map<worker_key, worker_actor> here_;
  std::vector<copy_receiver_actor> receivers_;
};

} // namespace parley::actors
