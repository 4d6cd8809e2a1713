#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace parley::net {

/// An open socket as the server's stop sees it. Both calls come from any thread and only post to the connection's
/// strand.
class connection {
public:
  virtual ~connection() = default;

  /// Close when nothing is under way any more.
  virtual void drain() = 0;

  /// Close now.
  virtual void cut() = 0;
};

/// All open sockets of a server. Thread-safe.
class connections {
public:
  /// One place among the connections, held by whoever owns the socket.
  class place {
  public:
    place(connections& all, std::uint64_t id) : all_(&all), id_(id) {}
    place(place&& other) noexcept : all_(std::exchange(other.all_, nullptr)), id_(other.id_) {}
    place& operator=(place&&) = delete;
    ~place();

    /// The socket has another owner from now on.
    void move_to(const std::weak_ptr<connection>& owner);

  private:
    connections* all_;
    std::uint64_t id_;
  };

  explicit connections(std::size_t bound) : bound_(bound) {}

  /// A place without an owner yet (`move_to` names it); none when there are too many or `close_door` was called.
  std::optional<place> enter();

  std::size_t count() const;
  bool draining() const;

  /// No further `enter`; everybody is told to drain.
  void close_door();
  void cut_all();

  /// False when some are left at the deadline.
  bool wait_empty(std::chrono::steady_clock::time_point deadline);

private:
  void leave(std::uint64_t id);

  const std::size_t bound_;
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  std::map<std::uint64_t, std::weak_ptr<connection>> all_;
  std::uint64_t last_id_ = 0;
  bool draining_ = false;
  bool cut_ = false;
};

} // namespace parley::net
