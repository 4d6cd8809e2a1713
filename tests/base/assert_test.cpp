#include "base/expect.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using namespace parley::base;

namespace {

void at_least_two(int value) {
  PARLEY_ASSERT(value >= 2, "callers pass two or more");
}

} // namespace

TEST_CASE("an assertion that holds costs nothing and says nothing") {
  const auto before = violation_count();
  at_least_two(2);
  CHECK(violation_count() == before);
}

#ifdef __SANITIZE_ADDRESS__
TEST_CASE("a violation aborts a sanitized build") {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    at_least_two(1);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
}
#elif !defined(__SANITIZE_THREAD__)
namespace {

int told = 0;
std::string last_meaning;

} // namespace

TEST_CASE("a violation is counted each time, told once for each place, and thrown") {
  told = 0;
  set_violation_handler([](const assertion_site& site) noexcept {
    ++told;
    last_meaning = site.meaning;
  });
  const auto before = violation_count();
  for (int i = 0; i < 3; ++i) CHECK_THROWS_AS(at_least_two(1), invariant_violation);
  CHECK(violation_count() == before + 3);
  CHECK(told == 1);
  CHECK(last_meaning == "callers pass two or more");
  CHECK_THROWS_WITH(at_least_two(0), "callers pass two or more (value >= 2)");
  set_violation_handler(nullptr);
}

TEST_CASE("where nothing may be thrown, a violation is counted and told, and the work goes on") {
  told = 0;
  set_violation_handler([](const assertion_site&) noexcept { ++told; });
  const auto before = violation_count();
  int done = 0;
  const auto give_back = [&](int held) noexcept {
    PARLEY_EXPECT(held > 0, "what is given back was held");
    ++done;
  };
  for (const int held : {0, 1, 0}) give_back(held);
  CHECK(done == 3);
  CHECK(told == 1);
  CHECK(violation_count() == before + 2);
  set_violation_handler(nullptr);
}
#endif
