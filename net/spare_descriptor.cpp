#include "net/spare_descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace parley::net {

bool spare_descriptor::is_short(error_code failed) {
  return failed == asio::error::no_descriptors || failed == boost::system::errc::too_many_files_open_in_system;
}

void spare_descriptor::take() {
  fd_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void spare_descriptor::give() {
  if (const int fd = std::exchange(fd_, -1); fd >= 0) ::close(fd);
}

} // namespace parley::net
