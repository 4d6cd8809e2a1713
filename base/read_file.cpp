#include "base/read_file.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace parley::base {

namespace {

struct descriptor {
  int number;
  ~descriptor() {
    if (number >= 0) ::close(number);
  }
};

} // namespace

std::optional<std::string> read_file(const std::filesystem::path& file, std::size_t most) {
  constexpr std::size_t least_room = std::size_t{1} << 16;
  const descriptor from{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat about {};
  if (from.number < 0 || ::fstat(from.number, &about) != 0) return std::nullopt;
  const auto told = S_ISREG(about.st_mode) ? static_cast<std::size_t>(about.st_size) : 0;
  if (told > most) return std::nullopt;
  std::string bytes(told + 1, '\0'); // one more, to see the end
  std::size_t done = 0;
  while (true) {
    if (done == bytes.size()) bytes.resize(bytes.size() + std::max(bytes.size(), least_room));
    const auto count = ::read(from.number, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
    if (done > most) return std::nullopt;
  }
  bytes.resize(done);
  return bytes;
}

} // namespace parley::base
