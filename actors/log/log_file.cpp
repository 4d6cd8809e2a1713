#include "actors/log/log_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace parley::actors {

namespace {

constexpr mode_t for_its_user = S_IRUSR | S_IWUSR;

std::runtime_error refused(const std::filesystem::path& folder, const std::string& why) {
  return std::runtime_error(folder.string() + " cannot be used: " + why);
}

/// Without waiting for anybody, as opening a pipe would.
owned_descriptor open_regular(const std::filesystem::path& path, int flags) {
  owned_descriptor file(::open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW, for_its_user));
  struct stat now {};
  if (file && ::fstat(file.number(), &now) == 0 && S_ISREG(now.st_mode)) return file;
  if (file) errno = EINVAL;
  return owned_descriptor();
}

} // namespace

owned_descriptor::~owned_descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

owned_descriptor::owned_descriptor(owned_descriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

owned_descriptor& owned_descriptor::operator=(owned_descriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

log_file log_file::create(const std::filesystem::path& path) {
  ::unlink(path.c_str());
  return log_file(owned_descriptor(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, for_its_user)));
}

log_file log_file::reopen(const std::filesystem::path& path, std::size_t keep) {
  auto file = open_regular(path, O_WRONLY | O_APPEND);
  if (file && ::ftruncate(file.number(), static_cast<off_t>(keep)) != 0) return log_file(owned_descriptor());
  return log_file(std::move(file));
}

bool log_file::append(std::string_view bytes, std::string_view more, bool sync) {
  while (!bytes.empty() || !more.empty()) {
    const auto part = [](std::string_view of) { return iovec{const_cast<char*>(of.data()), of.size()}; };
    const std::array parts{part(bytes), part(more)};
    const auto count = ::writev(file_.number(), parts.data(), parts.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    const auto first = std::min(static_cast<std::size_t>(count), bytes.size());
    bytes.remove_prefix(first);
    more.remove_prefix(static_cast<std::size_t>(count) - first);
  }
  struct stat now {};
  if (::fstat(file_.number(), &now) != 0) return false;
  if (now.st_nlink == 0) {
    errno = ENOENT;
    return false;
  }
  return !sync || ::fdatasync(file_.number()) == 0;
}

owned_descriptor lock_folder(const std::filesystem::path& folder) {
  std::error_code problem;
  if (std::filesystem::create_directories(folder, problem))
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, problem);
  if (problem) throw refused(folder, problem.message());
  auto lock = open_regular(folder / "lock", O_RDWR | O_CREAT);
  if (!lock) throw refused(folder, std::generic_category().message(errno));
  struct stat now {};
  if (::stat(folder.c_str(), &now) == 0 && (now.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw refused(folder, "others may read it; it must have mode 0700");
  if (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0) throw refused(folder, "another process uses it");
  return lock;
}

file_reader::file_reader(const std::filesystem::path& path) : file_(open_regular(path, O_RDONLY)) {}

std::optional<std::string> file_reader::read(std::size_t most, std::size_t from) const {
  struct stat now {};
  if (!file_ || ::fstat(file_.number(), &now) != 0) return std::nullopt;
  const auto size = static_cast<std::size_t>(now.st_size);
  std::string bytes(std::min(most, size - std::min(from, size)), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto count =
        ::pread(file_.number(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(from + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

std::optional<std::string> read_part(const std::filesystem::path& path, std::size_t most, std::size_t from) {
  return file_reader(path).read(most, from);
}

} // namespace parley::actors
