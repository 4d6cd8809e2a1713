#include "base/open_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace parley::base {

std::optional<open_file> open_file::open(const std::filesystem::path& path, std::error_code& why) {
  why.clear();
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // O_NONBLOCK: it may be a pipe
  if (descriptor < 0) {
    why.assign(errno, std::generic_category());
    return std::nullopt;
  }
  open_file opened(descriptor, 0);
  struct stat about {};
  if (::fstat(descriptor, &about) != 0) {
    why.assign(errno, std::generic_category());
    return std::nullopt;
  }
  if (!S_ISREG(about.st_mode)) {
    why = std::make_error_code(std::errc::no_such_file_or_directory);
    return std::nullopt;
  }
  opened.size_ = static_cast<std::uint64_t>(about.st_size);
  return opened;
}

open_file::open_file(open_file&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

open_file::~open_file() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::size_t open_file::read(std::uint64_t offset, std::span<char> into) const noexcept {
  std::size_t done = 0;
  while (done < into.size()) {
    const auto count = ::pread(descriptor_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

} // namespace parley::base
