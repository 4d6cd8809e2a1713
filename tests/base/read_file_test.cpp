#include "base/read_file.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using parley::base::read_file;

namespace {

struct folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("parley_read_file_" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(path); }
  ~folder() { std::filesystem::remove_all(path); }
};

} // namespace

TEST_CASE("a file is read whole, or not at all") {
  const folder in;
  const auto file = in.path / "file";
  for (const std::size_t size : {0, 1, 65535, 65536, 200000}) {
    std::string bytes(size, 'x');
    for (std::size_t i = 0; i < size; i += 7) bytes[i] = static_cast<char>(i);
    std::ofstream(file, std::ios::binary) << bytes;
    CHECK(read_file(file) == bytes);
    CHECK(read_file(file, size) == bytes);
    if (size > 0) CHECK_FALSE(read_file(file, size - 1));
  }
  CHECK_FALSE(read_file(in.path / "none"));
  CHECK_FALSE(read_file(in.path));
}

TEST_CASE("a pipe is read to its end") {
  std::signal(SIGPIPE, SIG_IGN); // for the writer, when the reader has had enough
  const folder in;
  const auto pipe = in.path / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const std::string bytes(300000, 'y');
  for (const auto most : {bytes.size(), bytes.size() - 1}) {
    std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << bytes; });
    const auto read = read_file(pipe, most);
    CHECK(read.has_value() == (most == bytes.size()));
    if (read) CHECK(*read == bytes);
    writer.join();
  }
}
