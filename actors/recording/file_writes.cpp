#include "actors/recording/file_writes.hpp"

#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace parley::actors {

namespace {

[[noreturn]] void refused(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

} // namespace

int make_file(const std::filesystem::path& file) {
  const int made = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made < 0) refused(file.c_str());
  return made;
}

void write_at(int file, const void* bytes, std::size_t size, std::size_t offset) {
  const char* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const auto written = ::pwrite(file, from, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refused("a recording cannot be written");
    from += written;
    size -= static_cast<std::size_t>(written);
    offset += static_cast<std::size_t>(written);
  }
}

void replace_file(const std::filesystem::path& file, std::string_view content) {
  auto fresh = file;
  fresh += ".new";
  std::filesystem::remove(fresh);
  const int to = make_file(fresh);
  try {
    write_at(to, content.data(), content.size(), 0);
  } catch (...) {
    ::close(to);
    throw;
  }
  ::close(to);
  std::filesystem::rename(fresh, file);
}

} // namespace parley::actors
