#pragma once

#include "actors/log/copy_budget.hpp"
#include "actors/log/copy_schedule.hpp"
#include "actors/log/log_file.hpp"
#include "actors/log/log_piece.hpp"
#include "actors/log/rebuild.hpp"
#include "actors/log/task_thread.hpp"
#include "actors/meters/log_meter.hpp"

#include <tl/expected.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace parley::actors {

class log_store;

/// The log of one live session, to which its actor adds. Nothing here waits for the disk.
class durable_log {
public:
  /// As long as it is kept: adds what happened at `now`. To be called before its effects reach the client.
  void note(log_record what, protocol::time_point now);

  /// Whether another process could take the session up.
  bool kept() const;

  /// The session is over, and nothing is left of it.
  ~durable_log();

  /// Instead, the next process will go on with it.
  void leave() { leaves_ = true; }

private:
  friend class log_store;
  struct shared_file;
  durable_log(log_store& store, std::shared_ptr<shared_file> file, protocol::time_point accepted);

  log_store& store_;
  std::shared_ptr<shared_file> file_;
  protocol::time_point accepted_; ///< times are counted from here
  bool leaves_ = false;
};

/// The logs of all sessions that another process could take up, as files of one folder, written by a thread of its own.
/// Thread-safe; must outlive its logs.
class log_store {
public:
  struct options {
    std::filesystem::path folder;
    bool sync = false;
    std::size_t most_waiting = 128u << 20;           ///< bytes; a session with more to write is no longer kept
    std::size_t most_copied = std::size_t{16} << 30; ///< bytes of others' logs (copy_budget)
    std::chrono::milliseconds resume{};              ///< settings `limits.resume_seconds`
    std::chrono::milliseconds longest{};             ///< the longest session
    std::function<bool()> open_for_clients;          ///< whether clients have been able to come back since
    std::uint64_t node = 0;                          ///< random number of this process (log_owner.hpp)
    /// Another gateway owns the session by now. Called on a thread of the store; null = there is no other gateway.
    std::function<void(const std::string& session_id)> disowned;
  };

  /// Lists the sessions of earlier processes. Called with the folder for this process alone. `counted` must outlive it.
  /// \throws std::runtime_error if the folder cannot be used
  log_store(options with, log_meter& counted);

  /// Writes everything that waits.
  ~log_store();

  log_store(const log_store&) = delete;
  log_store& operator=(const log_store&) = delete;

  /// Begins the log of a live session, whose client connected at `accepted`.
  std::unique_ptr<durable_log> begin(const logged::beginning& first, protocol::time_point accepted);

  /// Whether there is a session of an earlier process with this id, which nobody has taken up.
  bool holds(const std::string& session_id) const;

  struct taken {
    rebuilt_session session;
    std::unique_ptr<durable_log> log;
  };
  /// What a client claims that wants to go on with a session of an earlier process.
  struct claim {
    std::string session_id;
    std::string key; ///< name of its API key
    std::string token;
  };
  /// Calls `done` on another thread: with the session, which is no longer held after that, or with nothing. Several calls
  /// are answered in their order. False after `stop_taking_up`.
  [[nodiscard]] bool take_up(claim of, rebuild_terms terms, std::function<void(std::optional<taken>)> done);

  /// Waits until the calls of `take_up` so far are answered; later ones must not come. Blocks.
  void stop_taking_up() { readers_.finish(); }

  // ---- between gateways (log_copies.cpp); nothing here waits for the disk

  using piece_sink = std::function<void(log_piece&&)>;

  std::uint64_t node() const { return with_.node; }

  /// From now on sends all logs of live sessions, from their beginning; null = to nobody.
  void copy_to(piece_sink peer);
  void confirm(std::size_t bytes);
  void refused(const log_refused& of);

  struct copy_source {
    std::uint64_t node = 0;
    std::uint64_t link = 0; ///< differs for each link to this process
  };
  /// Keeps what another gateway sends as a log that can be taken up here. `reply` is called on a thread of the store, or
  /// at once.
  void receive(copy_source from, log_piece piece, piece_replier reply);

  /// Its copies are kept for as long as their clients may come back.
  void sender_gone(std::uint64_t link);

private:
  friend class durable_log;
  struct left {
    std::filesystem::path path;
    std::string key;
    std::uint64_t link = 0;                                           ///< the link that it comes over; 0 = none
    std::optional<std::chrono::steady_clock::time_point> alone_since; ///< when that link was lost
  };
  /// A copy that grows. Used on the readers' thread alone.
  struct copy {
    log_file file;
    std::size_t size = 0;
    copy_source from;
    std::uint64_t epoch = 0;
    piece_replier reply;
  };

  void write(durable_log::shared_file& to, const timed_record& record);
  std::size_t now_waiting(std::size_t bytes);
  void no_longer_waiting(std::size_t bytes);
  void lose(durable_log::shared_file& what, const std::string& why);
  void clear(durable_log::shared_file& what);
  void list();
  void list(const std::string& session_id, left what);
  static std::uint64_t taken_up_in(const std::filesystem::path& log);
  static void remove(const std::filesystem::path& file);
  void sweep();
  std::optional<taken> read(const claim& of, rebuild_terms&& terms);
  std::optional<left> find(const claim& of) const;
  std::optional<taken> give_up(const claim& of, const log_problem& why);
  void forget(const std::string& session_id);
  std::filesystem::path path_of(const std::string& session_id) const;
  bool overdue(const left& what, std::chrono::steady_clock::time_point now) const;

  void send_copies();
  bool end_copy(const session_name& session, bool announce);
  void own(const session_name& session, log_owner who);
  void disown(const session_name& session);
  std::optional<log_owner> owner_here(const session_name& session) const;
  std::filesystem::path copy_path_of(const std::string& session_id) const;
  void take_piece(const copy_source& from, log_piece& piece, const piece_replier& reply);
  bool begin_copy(const copy_source& from, const log_piece& piece);
  bool let_in(std::uint64_t link, std::size_t bytes);
  void taken_in(std::uint64_t link, std::size_t bytes);
  void drop_copy(const std::string& session_id);
  std::filesystem::path make_own(const session_name& session, const std::filesystem::path& path, std::uint64_t epoch);

  const options with_;
  log_meter& counted_;
  owned_descriptor lock_;
  mutable std::mutex mutex_;
  std::map<std::string, left> left_;                               ///< by session id
  std::optional<std::chrono::steady_clock::time_point> opened_at_; ///< since when clients can come back
  std::map<session_name, log_owner> owned_;                        ///< live sessions, and some that were taken up
  std::deque<session_name> once_taken_up_;                         ///< the oldest are forgotten
  copy_schedule schedule_;                                         ///< this and `peer_` on the writer's thread alone
  piece_sink peer_;
  std::map<std::string, copy> copies_;            ///< this and the next on the readers' thread alone
  copy_budget copied_;                            ///< of copies that grow, and of those that are left
  std::map<std::uint64_t, std::size_t> arriving_; ///< bytes that wait for the readers' thread, by link
  std::atomic<std::size_t> waiting_{0};
  std::atomic<bool> complained_{false};
  task_thread writer_;
  task_thread readers_; ///< declared last: its tasks use all of the above
};

} // namespace parley::actors
