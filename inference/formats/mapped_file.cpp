#include "inference/formats/mapped_file.hpp"

#include "inference/formats/file_problem.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace parley::inference {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const char* what) {
  throw std::runtime_error(path.string() + ": " + what + ": " + std::strerror(errno));
}

struct descriptor {
  int fd;
  ~descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

} // namespace

mapped_file::mapped_file(const std::filesystem::path& path) {
  if (const auto problem = file_problem(path); problem && *problem != is_missing)
    throw std::runtime_error(path.string() + ": " + *problem);
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) refuse(path, "can't open");
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) refuse(path, "can't read its size");
  if (!S_ISREG(info.st_mode)) throw std::runtime_error(path.string() + ": not a regular file");
  auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return;
  auto* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (start == MAP_FAILED) refuse(path, "can't map");
#if defined(MADV_HUGEPAGE)
  ::madvise(start, size, MADV_HUGEPAGE); // a hint: what is read from disk from now on may lie in huge pages
#endif
  bytes_ = {static_cast<const std::byte*>(start), size};
}

mapped_file::~mapped_file() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

} // namespace parley::inference
