#pragma once

#include "actors/engine_thread.hpp"
#include "actors/messages.hpp"
#include "actors/meters.hpp"

#include <map>
#include <memory>
#include <optional>

namespace parley::actors {

/// One device: owns the engine's thread, passes commands in and events out by engine session id, and offers slots to the
/// queue manager once the engine is loaded, and again whenever it can take more or fewer. A session that dies has its engine
/// session closed. When the engine cannot be loaded or throws, the actor ends with the reason as its error, and all who
/// monitor it learn it.
///
/// To be spawned `detached`: it joins the engine's thread when it ends.
class gpu_worker : public worker_actor::base {
public:
  /// `counted` outlives the actor.
  gpu_worker(caf::actor_config& config, worker_key key, engine_factory make, meters::worker& counted);

  const char* name() const override { return "gpu_worker"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  /// An engine session, from `open` to `closed` or to the failure of its open.
  struct client {
    session_actor session;
    bool opening = true;
    bool closing = false;
    std::optional<ticket_key> orphaned; ///< to be freed when the engine has closed it
  };
  using clients = std::map<inference::session_id, client>;

  void open(engine_open& message);
  void order(engine_order& message);
  void route(engine_event& message);
  void close(inference::session_id id, client& of);
  void forget(clients::iterator which);
  void session_died(const caf::actor_addr& who);
  void free_orphan(const slot_orphaned& message);
  void offer(const inference::engine_info& info);
  void change(int slots);

  const worker_key key_;
  engine_factory make_;
  meters::worker& meters_;
  std::unique_ptr<engine_thread> engine_;
  queue_actor queue_;
  std::optional<inference::engine_info> info_;
  clients clients_;
};

} // namespace parley::actors
