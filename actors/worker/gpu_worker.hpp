#pragma once

#include "actors/capacity/latest_capacity.hpp"
#include "actors/messages.hpp"
#include "actors/worker/engine_thread.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace parley::actors {

/// One device: owns the engine's thread, passes commands in and events out by engine session id, and offers slots to
/// the queue managers of one or several gateways once the engine is loaded, and again whenever it can take more or
/// fewer. Reports its load at most twice a second. When an open arrives, it checks itself whether a slot is left: if a
/// session of another gateway was faster, the open is denied. When a session dies, its engine session is closed. If the
/// engine cannot be loaded or throws, the actor ends with the reason as its error, which all who monitor it receive.
///
/// When it ends, another actor joins the engine's thread: waiting for all actors therefore includes that.
class gpu_worker : public worker_actor::base {
public:
  gpu_worker(caf::actor_config& config, engine_factory make);

  const char* name() const override { return "gpu_worker"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  /// An engine session, from `open` until it is `closed` or its open has failed.
  struct client {
    session_actor session;
    ticket_key ticket = 0;
    bool opening = true;
    bool closing = false;
    bool orphaned = false; ///< the slot is freed when the engine has closed it
  };
  using clients = std::map<conversation::session_id, client>;

  /// A gateway that may fill its slots.
  struct gateway_client {
    queue_actor queue;
    worker_key key;                   ///< the worker's key at that gateway
    int offered = -1;                 ///< slots last offered to it
    latest_capacity::measured joined; ///< the counts when it joined, which are not its own
  };

  void open(engine_open& message);
  void order(engine_command& message);
  void route(engine_event& message);
  void close(conversation::session_id id, client& of);
  void forget(clients::iterator which);
  void start(const worker_start& message);
  void stop();
  void peer_gone(const caf::actor_addr& who);
  void free_orphan(const slot_orphaned& message);
  void offer();
  void change(int slots);
  void measure();
  void report();
  void free(const client& gone);

  engine_factory make_;
  std::shared_ptr<latest_capacity> box_;
  latest_capacity::measured capacity_;
  recent_prompts prompts_;
  std::chrono::steady_clock::time_point reported_{};
  bool report_waits_ = false;
  std::unique_ptr<engine_thread> engine_;
  std::vector<gateway_client> gateways_;
  bool stopping_ = false;
  std::optional<inference::engine_info> info_;
  clients clients_;
};

} // namespace parley::actors
