#pragma once

#include "actors/engine_thread.hpp"
#include "actors/front_door.hpp"
#include "actors/node_link.hpp"
#include "actors/recording/archive.hpp"
#include "actors/session.hpp"
#include "actors/worker_board.hpp"
#include "config/settings.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parley::actors {

/// All actors of a server: the queue manager first, then workers as they are added or join from other nodes, then a
/// session for each connection.
class house final : public front_door, public node_door {
public:
  /// Whether workers of other nodes may join.
  enum class nodes : std::uint8_t { none, may_join };

  /// `watch` hears of every change of a worker, on one of the house's threads; it may not block. An engine that could
  /// not be loaded or has thrown is a worker that is `down`. Throws config::settings_error when `record.dir` or
  /// `limits.journal_dir` cannot be used.
  house(const config::settings& settings, worker_board::watcher watch, nodes others = nodes::none);

  /// Stops, if `stop` was not called.
  ~house() override;

  house(const house&) = delete;
  house& operator=(const house&) = delete;

  /// Starts a worker. It loads its engine on a thread of its own; until it is up, clients hear `service_unavailable`.
  void add_worker(std::string device, engine_factory make);

  /// Refuses newcomers, tells the running sessions (`session.go_away`), and waits until the last one is closed: at most
  /// `limits.drain_seconds` and a moment. Their last frames may still be on their way. Blocks.
  void drain();

  /// Ends what is left in this process, sessions first, and joins every thread. The last call; no connection may come any more: the server in front
  /// of it is stopped. Blocks.
  void stop();

  // front_door; all thread-safe
  std::unique_ptr<session_inbox> admit(connection_info info, std::shared_ptr<client_link> link) override;
  readiness ready() const override { return board_.ready(); }
  bool loading() const override { return nodes_ == nodes::none && !board_.was_up(); }
  void status(std::function<void(std::string json)> done, status_part part = status_part::all) override;
  void metrics(std::function<void(std::string text)> done) override;
  std::string sessions(const requester& who) override;
  void close_session(std::string id, std::string reason, requester who,
                     std::function<void(close_answer)> done) override;
  void move_session(std::string id, std::function<void(bool known)> done) override;
  void drain_worker(std::uint64_t id, bool drain, std::function<void(bool known)> done) override;

  recording_desk* recordings() override { return archive_.get(); }

  // node_door; thread-safe. Only where nodes may join.
  void admit_node(node_socket socket, const std::string& address) override;

  /// Sessions that are not closed yet.
  std::size_t live_sessions() const { return surroundings_.registry.live(); }

private:
  void start_spilling(const config::settings& settings);
  void start_recording(const config::settings& settings);
  session_terms terms() const;
  std::unique_ptr<session_inbox> admit_again(const connection_info& info, std::shared_ptr<client_link> link);

  const nodes nodes_;
  const protocol::session_limits limits_;
  session_surroundings surroundings_;
  worker_board board_;
  caf::actor_system_config config_;
  caf::actor_system system_;
  std::unique_ptr<archive> archive_; ///< null = nothing is recorded
  queue_actor queue_;
  std::vector<worker_actor> workers_; ///< of this process
  std::optional<node_links> links_;
  node_registry_actor registry_;
  bool stopped_ = false;
};

} // namespace parley::actors
