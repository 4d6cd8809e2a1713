#include "actors/secure_random.hpp"

#include <cerrno>
#include <sys/random.h>
#include <system_error>

namespace parley::actors {

std::uint64_t secure_random() {
  std::uint64_t bits = 0;
  // Requests of up to 256 bytes are never cut short once the kernel's source is seeded.
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits)
    throw std::system_error(errno, std::generic_category(), "getrandom");
  return bits;
}

} // namespace parley::actors
