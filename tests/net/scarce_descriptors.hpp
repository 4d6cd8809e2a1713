#pragma once

#include <algorithm>
#include <cstddef>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace parley::net {

/// While it lives, this process has only so many descriptors left.
class scarce_descriptors {
public:
  explicit scarce_descriptors(std::size_t left) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    low.rlim_cur = std::min<rlim_t>(before_.rlim_cur, 1024); // so that only a few have to be occupied
    ::setrlimit(RLIMIT_NOFILE, &low);
    for (int fd = take(); fd >= 0; fd = take()) taken_.push_back(fd);
    for (; left > 0; --left) give_one();
  }
  ~scarce_descriptors() {
    while (!taken_.empty()) give_one();
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  scarce_descriptors(const scarce_descriptors&) = delete;
  scarce_descriptors& operator=(const scarce_descriptors&) = delete;

private:
  static int take() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
  void give_one() {
    ::close(taken_.back());
    taken_.pop_back();
  }

  rlimit before_{};
  std::vector<int> taken_;
};

} // namespace parley::net
