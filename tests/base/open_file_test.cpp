#include "base/open_file.hpp"

#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>

using parley::base::open_file;

TEST_CASE("a file is read in pieces from anywhere, with the size that it had") {
  const parley::tests::temporary_folder folder;
  const auto path = folder.path() / "a";
  std::ofstream(path) << "0123456789";
  std::error_code why;
  const auto file = open_file::open(path, why);
  REQUIRE(file);
  CHECK_FALSE(why);
  CHECK(file->size() == 10);
  std::array<char, 4> piece{};
  CHECK(file->read(3, piece) == 4);
  CHECK(std::string(piece.data(), 4) == "3456");
  CHECK(file->read(8, piece) == 2);
  CHECK(std::string(piece.data(), 2) == "89");
  CHECK(file->read(10, piece) == 0);
  std::ofstream(path, std::ios::app) << "more";
  CHECK(file->size() == 10);
  std::filesystem::remove(path);
  CHECK(file->read(0, piece) == 4);
}

TEST_CASE("what is no regular file is not opened, and nothing waits for a pipe") {
  const parley::tests::temporary_folder folder;
  std::error_code why;
  CHECK_FALSE(open_file::open(folder.path() / "absent", why));
  CHECK(why == std::errc::no_such_file_or_directory);
  CHECK_FALSE(open_file::open(folder.path(), why));
  CHECK(why == std::errc::no_such_file_or_directory);
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  CHECK_FALSE(open_file::open(folder.path() / "pipe", why));
  CHECK(why == std::errc::no_such_file_or_directory);
  CHECK_FALSE(open_file::open(folder.path() / std::string(5000, 'a'), why));
  CHECK(why == std::errc::filename_too_long);
}
