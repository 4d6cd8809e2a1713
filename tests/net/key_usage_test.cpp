#include "net/access/key_usage.hpp"

#include "config/load.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace parley::net;
using parley::tests::temporary_folder;

namespace {

constexpr std::int64_t today = 1'795'953'600; ///< 2026-11-29 12:00:00 UTC

key_usage::unix_clock at_noon() {
  return [] { return today; };
}

key_limits two_minutes() {
  key_limits out;
  out.quotas[0] = 2;
  return out;
}

} // namespace

TEST_CASE("the sessions of a key use up its quota together") {
  key_usage usage({}, at_noon());
  usage.set_limits({{"ann", two_minutes()}, {"bob", {}}});
  const auto one = usage.account_of("ann");
  const auto other = usage.account_of("ann");
  one->charge(60, 100);
  CHECK_FALSE(other->spent());
  other->charge(60, 0);
  REQUIRE(one->spent());
  REQUIRE(one->rests().size() == 1);
  CHECK((one->rests()[0].in_seconds && one->rests()[0].limit == 120 && one->rests()[0].rest == 0));
  CHECK(one->rests()[0].renews_in == std::chrono::hours(12));
  CHECK(*one->spent() == "the 2 minutes of this day are used up; renewed at 2026-11-30T00:00:00Z");
  CHECK(usage.spent("ann"));
  CHECK_FALSE(usage.spent("bob"));
  CHECK_FALSE(usage.account_of(""));
  REQUIRE(usage.all().size() == 1);
  CHECK(usage.all()[0].key == "ann");
}

TEST_CASE("other limits count what was used before") {
  key_usage usage({}, at_noon());
  const auto account = usage.account_of("ann");
  account->charge(120, 0);
  CHECK_FALSE(account->spent());
  usage.set_limits({{"ann", two_minutes()}});
  CHECK(account->spent());
  usage.set_limits({});
  CHECK_FALSE(account->spent());
}

TEST_CASE("what keys have used outlives the process") {
  const temporary_folder folder;
  const auto file = folder.path() / "key-usage";
  {
    key_usage usage(file, at_noon());
    usage.set_limits({{"ann", two_minutes()}});
    usage.account_of("ann")->charge(120, 7);
  }
  key_usage usage(file, at_noon());
  usage.set_limits({{"ann", two_minutes()}});
  CHECK(usage.spent("ann"));
  CHECK(usage.of("ann").quotas.at(2).used == 7);
}

TEST_CASE("an account may outlive what it counts for") {
  auto usage = std::make_unique<key_usage>(std::filesystem::path(), at_noon());
  const auto account = usage->account_of("ann");
  usage.reset();
  account->charge(1, 1);
  CHECK_FALSE(account->spent());
}

TEST_CASE("a damaged file of usage is told, not overwritten") {
  const temporary_folder folder;
  const auto file = folder.write("key-usage", "parley usage 1\nann 1 2\n");
  CHECK_THROWS_AS(key_usage(file, at_noon()), parley::config::settings_error);
}
