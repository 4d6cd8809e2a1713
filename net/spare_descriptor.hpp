#pragma once

#include "net/beast.hpp"

#include <optional>

namespace parley::net {

/// One descriptor kept in reserve. Without it, a listener that has run out of descriptors could not even close the
/// waiting connections, and their clients would wait until they time out. Used on one listener's strand.
class spare_descriptor {
public:
  spare_descriptor() { take(); }
  ~spare_descriptor() { give(); }
  spare_descriptor(const spare_descriptor&) = delete;
  spare_descriptor& operator=(const spare_descriptor&) = delete;

  /// Whether an accept failed because no descriptor was left.
  static bool is_short(error_code failed);

  /// Takes the connection that has waited longest, and closes it unless the shortage has passed meanwhile. Returns an
  /// error if even that failed, or if none waits. The acceptor must be non-blocking.
  struct rescued {
    error_code failed;
    std::optional<tcp::socket> socket;
  };
  template<class Executor>
  rescued accept(tcp::acceptor& at, const Executor& on) {
    give();
    rescued one;
    one.socket.emplace(at.accept(on, one.failed));
    take();
    // Without the spare one, this would be the last descriptor.
    if (fd_ < 0 || one.failed) one.socket.reset();
    if (fd_ < 0) take();
    return one;
  }

private:
  void take();
  void give();

  int fd_ = -1;
};

} // namespace parley::net
