#include "actors/cluster/node_socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace parley::actors {

node_socket::~node_socket() {
  if (fd_ >= 0) ::close(fd_);
}

node_socket node_socket::twin() const {
  return node_socket(fd_ >= 0 ? ::fcntl(fd_, F_DUPFD_CLOEXEC, 0) : -1);
}

void node_socket::hang_up() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

} // namespace parley::actors
