#pragma once

#include "base/log_throttle.hpp"
#include "net/crowd.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace parley::net {

/// An open socket, as seen by the server when it stops. Both calls may come from any thread, and only post to the
/// connection's strand.
class connection {
public:
  virtual ~connection() = default;

  /// Close as soon as nothing is in progress.
  virtual void drain() = 0;

  /// Close now.
  virtual void cut() = 0;
};

/// Who owns a socket: it begins as an HTTP connection, and may go on as another one. Thread-safe.
class connection_owner {
public:
  void set(const std::weak_ptr<connection>& owner);
  std::shared_ptr<connection> get() const;

  /// Cuts the connection, one of whose handlers has thrown. Call it while the exception is handled.
  void failed() const noexcept;

private:
  mutable std::mutex mutex_;
  std::weak_ptr<connection> owner_;
};

/// All open sockets of a server. Thread-safe.
class connections {
public:
  /// One place among the connections, held by the owner of the socket.
  class slot {
  public:
    slot(connections& all, std::uint64_t id) : all_(&all), id_(id) {}
    slot(slot&& other) noexcept : all_(std::exchange(other.all_, nullptr)), id_(other.id_) {}
    slot& operator=(slot&&) = delete;
    ~slot();

    /// Changes the owner of the socket, to one without a session.
    void move_to(const std::weak_ptr<connection>& owner);

    /// The same for an owner with a session, which is not dropped for other connections.
    void move_to_session(const std::weak_ptr<connection>& owner);

  private:
    connections* all_;
    std::uint64_t id_;
  };

  explicit connections(std::size_t bound) : bound_(bound) {}

  /// A slot, still without an owner (`move_to` sets it). If there are too many connections, the oldest one without a
  /// session is cut, of the client that has most of those. None if all have sessions, and after `close_entrance`.
  std::optional<slot> enter(const std::string& client, std::shared_ptr<connection_owner> owner);

  std::size_t count() const;
  bool draining() const;

  /// `enter` fails from now on, and all connections are told to drain.
  void close_entrance();
  void cut_all();

  /// Waits until no connection is left; false if some are left at the deadline.
  bool wait_empty(std::chrono::steady_clock::time_point deadline);

private:
  struct place {
    std::shared_ptr<connection_owner> owner;
    std::string client;
    bool has_session = false;
    bool dropped = false; ///< to be cut for another one
  };

  /// Makes room for one more. False if there is none.
  bool make_room(std::shared_ptr<connection>& dropped);
  void change_owner(std::uint64_t id, const std::weak_ptr<connection>& owner, bool has_session);
  void leave(std::uint64_t id);

  const std::size_t bound_;
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  std::map<std::uint64_t, place> all_;
  crowd droppable_; ///< those without a session
  base::log_throttle crowded_{std::chrono::minutes(1)};
  std::size_t leaving_ = 0; ///< dropped, and not gone yet
  std::uint64_t last_id_ = 0;
  bool draining_ = false;
  bool cut_ = false;
};

} // namespace parley::net
