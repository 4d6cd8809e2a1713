#pragma once

#include "actors/durable/journal_meter.hpp"
#include "actors/durable/log_file.hpp"
#include "actors/durable/rebuild.hpp"
#include "actors/durable/task_thread.hpp"

#include <tl/expected.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace parley::actors {

class journal_store;

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
  friend class journal_store;
  struct shared_file;
  durable_log(journal_store& store, std::shared_ptr<shared_file> file, protocol::time_point accepted);

  journal_store& store_;
  std::shared_ptr<shared_file> file_;
  protocol::time_point accepted_; ///< times are counted from here
  bool leaves_ = false;
};

/// The logs of all sessions that another process could take up, as files of one folder, written by a thread of its own.
/// Thread-safe; must outlive its logs.
class journal_store {
public:
  struct options {
    std::filesystem::path folder;
    bool sync = false;
    std::size_t most_waiting = 128u << 20;  ///< bytes; a session with more to write is no longer kept
    std::chrono::milliseconds resume{};     ///< settings `limits.resume_seconds`
    std::chrono::milliseconds longest{};    ///< the longest session
    std::function<bool()> open_for_clients; ///< whether clients have been able to come back since
  };

  /// Lists the sessions of earlier processes. Called with the folder for this process alone. `counted` must outlive it.
  /// \throws std::runtime_error if the folder cannot be used
  journal_store(options with, journal_meter& counted);

  /// Writes everything that waits.
  ~journal_store();

  journal_store(const journal_store&) = delete;
  journal_store& operator=(const journal_store&) = delete;

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

private:
  friend class durable_log;
  struct left {
    std::filesystem::path path;
    std::string key;
  };

  void write(durable_log::shared_file& to, const timed_record& record);
  void lose(durable_log::shared_file& what, const std::string& why);
  void clear(durable_log::shared_file& what);
  void list();
  void sweep();
  std::optional<taken> read(const claim& of, rebuild_terms&& terms);
  std::optional<left> find(const claim& of) const;
  std::optional<taken> give_up(const claim& of, const log_problem& why);
  void forget(const std::string& session_id);
  std::filesystem::path path_of(const std::string& session_id) const;

  const options with_;
  journal_meter& counted_;
  owned_descriptor lock_;
  mutable std::mutex mutex_;
  std::map<std::string, left> left_;                               ///< by session id
  std::optional<std::chrono::steady_clock::time_point> opened_at_; ///< since when clients can come back
  std::atomic<std::size_t> waiting_{0};
  std::atomic<bool> complained_{false};
  task_thread writer_;
  task_thread readers_; ///< declared last: its tasks use all of the above
};

} // namespace parley::actors
