#pragma once

#include "actors/cluster/peer_messages.hpp"
#include "actors/cluster/registry_link.hpp"
#include "actors/log/log_store.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parley::actors {

/// One connection attempt has ended.
struct peer_dialled {
  std::shared_ptr<dialled> how;
};
/// The pause between two attempts is over.
struct peer_dial_now {};
using peer_link_inner = peer_link_actor::extend<caf::reacts_to<peer_dialled>, caf::reacts_to<peer_dial_now>>;

struct peer_link_options {
  std::string name; ///< of this gateway, for humans
  std::chrono::milliseconds patience{5000};
  std::chrono::milliseconds longest_pause{5000};
};

/// Sends the logs of this gateway's sessions to one of its peers: the first that answers, in the order of `nodes.peers`.
class peer_link : public peer_link_inner::base {
public:
  /// The store must outlive it.
  peer_link(caf::actor_config& config, peer_link_options options, log_store& store, std::vector<node_dialer> peers);

  const char* name() const override { return "peer_link"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  void dial();
  void on_dialled(dialled& how);
  bool is_answer() { return link_.is_from_peer(current_sender()); }
  void welcome(const peer_welcome& by);
  void retry(const std::string& reason);

  const peer_link_options options_;
  log_store& store_;
  std::vector<node_dialer> peers_;
  std::size_t next_ = 0; ///< the peer to try next
  registry_link link_;
  std::optional<copy_receiver_actor> receiver_; ///< there
};

} // namespace parley::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::peer_dialled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::peer_dial_now)
