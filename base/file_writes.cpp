#include "base/file_writes.hpp"

#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace parley::base {

namespace {

[[noreturn]] void refused(const std::filesystem::path& file) {
  throw std::system_error(errno, std::generic_category(), file.string());
}

int make(const std::filesystem::path& file, unsigned permissions) {
  const int made = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions);
  if (made < 0) refused(file);
  return made;
}

} // namespace

int make_file(const std::filesystem::path& file) {
  return make(file, 0600);
}

void write_at(int file, const void* bytes, std::size_t size, std::size_t offset) {
  const char* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const auto written = ::pwrite(file, from, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refused("a file cannot be written");
    from += written;
    size -= static_cast<std::size_t>(written);
    offset += static_cast<std::size_t>(written);
  }
}

void replace_file(const std::filesystem::path& file, std::string_view content, bool synced, unsigned permissions) {
  auto fresh = file;
  fresh += ".new";
  std::filesystem::remove(fresh);
  const int to = make(fresh, permissions);
  try {
    write_at(to, content.data(), content.size(), 0);
    if (synced && ::fsync(to) != 0) refused(fresh);
  } catch (...) {
    ::close(to);
    throw;
  }
  ::close(to);
  std::filesystem::rename(fresh, file);
}

} // namespace parley::base
