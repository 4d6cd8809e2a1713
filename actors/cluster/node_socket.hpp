#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>

// The interface between net/ and actors/ for links between nodes: net/ establishes them and checks the other end;
// actors/ gets a plain stream socket. Depends on neither CAF nor Boost.
namespace parley::actors {

/// Both ends of a link must agree on this and the version. Increment it when a message between nodes changes.
inline constexpr int node_wire = 9;

/// A connected stream socket. Destroying it closes the socket, unless it was released.
class node_socket {
public:
  /// Takes ownership of the descriptor; -1 = none.
  explicit node_socket(int fd) : fd_(fd) {}
  node_socket(node_socket&& other) noexcept : fd_(other.release()) {}
  node_socket& operator=(node_socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~node_socket();

  /// Releases the descriptor, which the caller now owns.
  int release() { return std::exchange(fd_, -1); }

  /// A duplicate of the descriptor; empty if no descriptor is left.
  node_socket twin() const;

  explicit operator bool() const { return fd_ >= 0; }

  /// Ends the connection for all duplicates of the descriptor.
  void hang_up();

private:
  int fd_;
};

/// Why an attempt failed.
struct dial_failure {
  std::string reason;   ///< in plain words
  bool lasting = false; ///< it will keep failing until somebody changes something
};

using dialled = std::variant<node_socket, dial_failure>;

/// Starts one attempt to reach the gateway, and calls back once, from a thread of its own. Never blocks.
using node_dialer = std::function<void(std::function<void(dialled)>)>;

/// A server that worker nodes may join.
class node_entrance {
public:
  virtual ~node_entrance() = default;

  /// Admits a node that has passed the checks. Thread-safe, never blocks.
  virtual void admit_node(node_socket socket, const std::string& address) = 0;
};

} // namespace parley::actors
