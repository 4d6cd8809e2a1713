#pragma once

#include "actors/engine_thread.hpp"
#include "actors/load_box.hpp"
#include "actors/messages.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace parley::actors {

/// One device: owns the engine's thread, passes commands in and events out by engine session id, and offers slots to
/// the queue managers of one house or of several once the engine is loaded, and again whenever it can take more or
/// fewer. Tells them of its load, at most twice a second. It grants a slot itself, when an open comes: who was slower
/// than another house's session is denied. A session that dies has its engine session closed. When the engine cannot be
/// loaded or throws, the actor ends with the reason as its error, and all who monitor it learn it.
///
/// When it ends, an actor of its own joins the engine's thread: whoever waits for all actors waits for that too.
class gpu_worker : public worker_actor::base {
public:
  gpu_worker(caf::actor_config& config, engine_factory make);

  const char* name() const override { return "gpu_worker"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  /// An engine session, from `open` to `closed` or to the failure of its open.
  struct client {
    session_actor session;
    ticket_key ticket = 0;
    bool opening = true;
    bool closing = false;
    bool orphaned = false; ///< the slot is to be freed when the engine has closed it
  };
  using clients = std::map<inference::session_id, client>;

  /// A house that may fill its slots.
  struct patron {
    queue_actor queue;
    worker_key key;            ///< the worker's name there
    int offered = -1;          ///< slots that it was told of last
    load_box::measured joined; ///< the load when it came: what was counted by then is none of its
  };

  void open(engine_open& message);
  void order(engine_order& message);
  void route(engine_event& message);
  void close(inference::session_id id, client& of);
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
  std::shared_ptr<load_box> box_;
  load_box::measured load_;
  recent_prompts prompts_;
  std::chrono::steady_clock::time_point reported_{};
  bool report_waits_ = false;
  std::unique_ptr<engine_thread> engine_;
  std::vector<patron> patrons_;
  bool stopping_ = false;
  std::optional<inference::engine_info> info_;
  clients clients_;
};

} // namespace parley::actors
