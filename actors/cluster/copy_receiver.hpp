#pragma once

#include "actors/cluster/peer_messages.hpp"
#include "actors/log/log_store.hpp"

namespace parley::actors {

/// Writes the logs that another gateway sends into this one's `journal.dir`, until the link is lost.
class copy_receiver : public copy_receiver_actor::base {
public:
  /// The store must outlive it.
  copy_receiver(caf::actor_config& config, log_store& store, peer_hello from);

  const char* name() const override { return "copy_receiver"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  log_store& store_;
  const std::uint64_t link_; ///< at this gateway
  peer_hello from_;
};

} // namespace parley::actors
