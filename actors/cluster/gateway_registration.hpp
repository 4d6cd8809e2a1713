#pragma once

#include "actors/cluster/registry_link.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace parley::actors {

/// What the process that runs a worker needs to know about it.
struct registration_event {
  enum class what : std::uint8_t {
    joined,
    link_lost, ///< it will try to join again
    refused,   ///< it never joined, and further attempts would fail too
    ended      ///< the engine could not be loaded or has thrown
  };
  what kind;
  std::string reason;
};

struct dial_over;
struct dial_now;
using gateway_registration_inner =
    gateway_registration_actor::extend<caf::reacts_to<engine_up>, caf::reacts_to<dial_over>, caf::reacts_to<dial_now>>;

/// One connection attempt has ended.
struct dial_over {
  std::shared_ptr<dialled> how;
};
/// The pause between two attempts is over.
struct dial_now {};

/// The settings of a registration.
struct registration_options {
  std::string name;                              ///< name of the node, for humans
  std::chrono::milliseconds patience{5000};      ///< how long to wait for an answer over a new link
  std::chrono::milliseconds longest_pause{5000}; ///< longest pause between two attempts
};

/// Keeps a worker joined to its gateway: waits for the engine, connects, introduces itself, and connects again whenever
/// the link is lost, after increasing pauses.
class gateway_registration : public gateway_registration_inner::base {
public:
  /// `tell` is called on a scheduler thread and must not block.
  gateway_registration(caf::actor_config& config, registration_options options, worker_actor worker, node_dialer dial,
                       std::function<void(registration_event)> tell);

  const char* name() const override { return "gateway_registration"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  void dial();
  void on_dialled(dialled& how);
  void greet(const node_registry_actor& registry);
  void on_verdict(const node_verdict& verdict);
  void gone(const caf::down_msg& down);
  void retry(const std::string& reason, bool lasting = false);

  const registration_options options_;
  node_dialer dial_;
  const std::function<void(registration_event)> tell_;
  worker_actor worker_;
  registry_link link_;
  std::optional<inference::engine_info> info_;
  bool was_joined_ = false;
};

} // namespace parley::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::dial_over)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::dial_now)
