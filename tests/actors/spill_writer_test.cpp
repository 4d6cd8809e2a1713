#include "actors/session/spill_writer.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <future>
#include <random>
#include <unistd.h>
#include <vector>

namespace parley::actors {

namespace {

namespace fs = std::filesystem;

/// A folder that is removed when the test ends.
struct folder {
  folder() : path(fs::temp_directory_path() / ("parley-spill-" + std::to_string(::getpid()))) { fs::remove_all(path); }
  ~folder() { fs::remove_all(path); }
  fs::path path;
};

/// Fetches the block and waits for it.
bool fetch(spill_writer& writer, const std::shared_ptr<spilled_block>& what) {
  std::promise<void> there;
  writer.fetch(what, [&] { there.set_value(); });
  there.get_future().wait();
  return what->here();
}

std::string some_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (auto& b : bytes) b = static_cast<char>(random());
  return bytes;
}

} // namespace

TEST_CASE("what is put on disk comes back, as often as it is asked for") {
  const folder f;
  spill_writer writer(f.path);
  const auto mine = std::make_shared<spill_file>(), yours = std::make_shared<spill_file>();
  std::vector<std::shared_ptr<spilled_block>> all;
  for (unsigned i = 0; i < 20; ++i) all.push_back(writer.put(i % 2 == 0 ? mine : yours, some_bytes(1000 + i, i)));
  for (auto round = 0; round < 2; ++round)
    for (unsigned i = 0; i < 20; ++i) {
      REQUIRE(fetch(writer, all[19 - i]));
      CHECK(all[19 - i]->bytes() == some_bytes(1000 + 19 - i, 19 - i));
      all[19 - i]->let_go();
      CHECK_FALSE(all[19 - i]->here());
    }
}

TEST_CASE("nobody else sees the files, and nothing is left of them") {
  const folder f;
  {
    spill_writer writer(f.path);
    CHECK((fs::status(f.path).permissions() & fs::perms::all) == fs::perms::owner_all);
    const auto kept = writer.put(std::make_shared<spill_file>(), "a secret");
    REQUIRE(fetch(writer, kept));
    CHECK(fs::is_empty(f.path));
  }
  CHECK(fs::is_empty(f.path));
}

TEST_CASE("a folder that can't be used is refused at once") {
  const folder f;
  { spill_writer makes_it(f.path); }
  const auto file = f.path / "file";
  std::filesystem::create_directory(file.string() + "s");
  std::FILE* made = std::fopen(file.c_str(), "w");
  REQUIRE(made);
  std::fclose(made);
  CHECK_THROWS_WITH(spill_writer(file), Catch::Contains(file.string()));
}

TEST_CASE("too much on its way is refused") {
  const folder f;
  spill_writer writer(f.path, 100);
  const auto file = std::make_shared<spill_file>();
  CHECK_FALSE(writer.put(file, std::string(101, 'x')));
  CHECK(writer.put(file, std::string(100, 'x')));
}

TEST_CASE("a disk that fails loses what was put there, and says so") {
  const folder f;
  spill_writer writer(f.path);
  fs::remove_all(f.path); // no file can be created any more
  const auto gone = writer.put(std::make_shared<spill_file>(), "x");
  REQUIRE(gone);
  CHECK_FALSE(fetch(writer, gone));
  CHECK(gone->lost());
}

} // namespace parley::actors
