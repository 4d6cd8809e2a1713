#include "net/descriptors.hpp"

#include <algorithm>
#include <sys/resource.h>

namespace parley::net {

namespace {

/// Used if there is practically no limit.
constexpr rlim_t enough = 1u << 20;

rlimit limit_now() {
  rlimit limit{1024, 1024};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

} // namespace

void raise_descriptor_limit() {
  rlimit limit = limit_now();
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, enough));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::size_t descriptor_limit() {
  return std::min(limit_now().rlim_cur, enough);
}

std::size_t connections_within(std::size_t wanted, std::size_t descriptors) {
  return std::min(wanted, std::max<std::size_t>(1, descriptors - descriptors / 4));
}

} // namespace parley::net
