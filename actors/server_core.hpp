#pragma once

#include "actors/cluster/node_link.hpp"
#include "actors/cluster/node_registry.hpp"
#include "actors/gateway_api.hpp"
#include "actors/large_frames.hpp"
#include "actors/queue/worker_table.hpp"
#include "actors/realtime/owner_budgets.hpp"
#include "actors/realtime/realtime_registry.hpp"
#include "actors/recording/archive.hpp"
#include "actors/restarted.hpp"
#include "actors/session/session.hpp"
#include "actors/settings_parts.hpp"
#include "actors/worker/engine_thread.hpp"
#include "config/settings.hpp"
#include "protocol/openai/shared/adapter.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace parley::actors {

/// All actors of a server: the queue manager first, then workers as they are added or join from other nodes, then a
/// session for each connection.
class server_core final : public gateway_api, public node_entrance {
public:
  /// Whether workers of other nodes may join.
  enum class nodes : std::uint8_t { none, may_join };

  /// `watch` is called after every change of a worker, on one of our threads; it must not block. An engine that could
  /// not be loaded or has thrown is reported as a worker that is `down`. `broken` is called, likewise, if the queue manager
  /// ends: then no new session can begin, and only another process helps. Throws config::settings_error if `record.dir`,
  /// `journal.dir` cannot be used.
  server_core(const config::settings& settings, worker_table::watcher watch, nodes others = nodes::none,
              std::function<void(std::string why)> broken = {});

  /// Calls `stop` if nobody has.
  ~server_core() override;

  server_core(const server_core&) = delete;
  server_core& operator=(const server_core&) = delete;

  /// Starts a worker, which loads its engine on its own thread.
  void add_worker(std::string device, engine_factory make);

  /// Has another gateway keep copies of the sessions' logs, which needs `journal.dir`: the first of `peers` that answers.
  /// `name` is this gateway's, for humans. Only if nodes may join.
  void copy_to_peers(std::vector<node_dialer> peers, std::string name);

  /// Refuses new clients, leaves the sessions that can be resumed to the next process with the same `journal.dir`, warns
  /// the others (`session.go_away`), and waits until the last one is closed, for at
  /// most a little longer than `limits.drain_seconds`. The sessions' last frames may still be on their way. Blocks.
  void drain();

  /// Ends everything in this process, sessions first, and joins every thread. Must be the last call: stop the server in
  /// front first, so that no more connections arrive. Blocks.
  void stop();

  // gateway_api; all thread-safe
  std::unique_ptr<session_handle> admit(connection_info info, std::shared_ptr<client_link> link) override;
  std::unique_ptr<guest_handle> admit_guest(connection_info info, std::shared_ptr<guest_link> link) override;
  readiness ready() const override { return board_.ready(); }
  std::string model() const override { return board_.model(); }
  std::string fault() const override;
  bool loading() const override { return nodes_ == nodes::none && !board_.was_up(); }
  void status(std::function<void(std::string json)> done, status_part part = status_part::all) override;
  void metrics(std::function<void(std::string text)> done) override;
  std::string sessions(const principal& who) override;
  void close_session(std::string id, std::string reason, principal who,
                     std::function<void(close_answer)> done) override;
  void close_sessions_of(const std::string& key, const std::string& reason) override;
  void move_session(std::string id, std::function<void(bool known)> done) override;
  void drain_worker(std::uint64_t id, bool drain, std::function<void(bool known)> done) override;

  recordings_api* recordings() override { return archive_.get(); }

  // node_entrance; thread-safe. Only if nodes may join.
  void admit_node(node_socket socket, const std::string& address) override;

  /// Number of sessions that are not yet closed.
  std::size_t live_sessions() const { return surroundings_.registry.live(); }

private:
  void note_fault(const std::string& what);
  void ask(std::function<void(const server_snapshot&)> done);
  void start_recording(const config::settings& settings);
  void start_logs(const config::settings& settings);
  session_terms terms() const;
  bool can_transcribe() const;
  bool can_delegate() const;
  std::unique_ptr<protocol::openai::adapter> adapter_for(const connection_info& info);
  std::unique_ptr<session_handle> admit_realtime(connection_info info, std::shared_ptr<client_link> link);
  std::unique_ptr<session_handle> admit_again(const connection_info& info, std::shared_ptr<client_link> link);
  std::unique_ptr<session_handle> offer_to_live(const log_store::claim& claim, std::uint64_t seen,
                                                const std::shared_ptr<resume_request>& offer, const std::string& owner);
  std::unique_ptr<session_handle> take_up(log_store::claim claim, std::uint64_t seen,
                                          const std::shared_ptr<resume_request>& offer, const connection_info& info,
                                          const std::string& owner);

  const nodes nodes_;
  const protocol::session_limits limits_;
  const openai_terms openai_;
  const std::function<void(std::string)> broken_;
  mutable std::mutex fault_mutex_;
  std::string fault_;
  session_surroundings surroundings_;
  realtime_registry realtime_;
  worker_table board_;
  caf::actor_system_config config_;
  caf::actor_system system_;
  large_frames large_frames_;
  owner_budgets budgets_;
  std::unique_ptr<archive> archive_; ///< null = nothing is recorded
  queue_actor queue_;
  std::vector<worker_actor> workers_; ///< those of this process
  std::optional<node_links> links_;
  registry_memory registry_memory_;
  std::unique_ptr<restarted<node_registry_actor>> registry_;
  std::chrono::milliseconds silence_; ///< settings `nodes.silence_seconds` and `nodes.rejoin_seconds`
  std::chrono::milliseconds rejoin_;
  std::unique_ptr<restarted<peer_link_actor>> peers_;
  std::atomic<bool> draining_{false};
  std::atomic<bool> stopping_{false};
  bool stopped_ = false;
};

} // namespace parley::actors
