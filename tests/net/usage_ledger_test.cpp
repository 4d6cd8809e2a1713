#include "net/access/usage_ledger.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;

namespace {

constexpr std::int64_t noon = 1'795'953'600; ///< 2026-11-29 12:00:00 UTC
constexpr std::int64_t day = 86'400;
constexpr std::int64_t midnight = noon + day / 2;
constexpr std::int64_t december = midnight + day; ///< 2026-12-01

key_limits limits(std::int64_t minutes_a_day, std::int64_t minutes_a_month, std::int64_t tokens_a_day,
                  std::int64_t tokens_a_month) {
  key_limits out;
  out.quotas = {minutes_a_day, minutes_a_month, tokens_a_day, tokens_a_month};
  return out;
}

double used(const usage_ledger& ledger, quota what, std::int64_t now) {
  return ledger.standings("ann", {}, now).at(static_cast<std::size_t>(what)).used;
}

} // namespace

TEST_CASE("a day's use ends at midnight UTC, a month's with the month") {
  usage_ledger ledger;
  ledger.charge("ann", {90, 1000}, noon);
  ledger.charge("ann", {30, 500}, midnight - 1);
  CHECK(used(ledger, quota::minutes_per_day, midnight - 1) == 2);
  CHECK(used(ledger, quota::tokens_per_day, midnight - 1) == 1500);
  CHECK(used(ledger, quota::minutes_per_day, midnight) == 0);
  CHECK(used(ledger, quota::minutes_per_month, midnight) == 2);
  ledger.charge("ann", {60, 1}, midnight);
  CHECK(used(ledger, quota::minutes_per_day, midnight) == 1);
  CHECK(used(ledger, quota::minutes_per_month, december - 1) == 3);
  CHECK(used(ledger, quota::tokens_per_month, december - 1) == 1501);
  CHECK(used(ledger, quota::minutes_per_month, december) == 0);
  CHECK(used(ledger, quota::tokens_per_month, december) == 0);
}

TEST_CASE("a quota is renewed when its period ends") {
  const auto all = usage_ledger().standings("ann", limits(1, 2, 3, 4), noon);
  REQUIRE(all.size() == 4);
  CHECK(all[0].renews_at == midnight);
  CHECK(all[1].renews_at == december);
  CHECK(all[2].renews_at == midnight);
  CHECK(all[3].renews_at == december);
  CHECK(all[3].limit == 4);
}

TEST_CASE("a key is spent with the first of its quotas, until the last of the spent ones is renewed") {
  usage_ledger ledger;
  const auto all = limits(2, 3, 0, 5000);
  ledger.charge("ann", {119, 4999}, noon);
  CHECK_FALSE(ledger.spent("ann", all, noon));
  ledger.charge("ann", {1, 0}, noon);
  REQUIRE(ledger.spent("ann", all, noon));
  CHECK(ledger.spent("ann", all, noon)->what == quota::minutes_per_day);
  CHECK_FALSE(ledger.spent("ann", all, midnight));
  CHECK_FALSE(ledger.spent("bob", all, noon));
  CHECK_FALSE(ledger.spent("ann", {}, noon));
  ledger.charge("ann", {0, 1}, noon);
  CHECK(ledger.spent("ann", all, noon)->what == quota::tokens_per_month);
  CHECK(ledger.spent("ann", all, midnight)->what == quota::tokens_per_month);
  CHECK_FALSE(ledger.spent("ann", all, december));
}

TEST_CASE("a quota is nearly spent from nine tenths on") {
  usage_ledger ledger;
  const auto all = limits(10, 0, 0, 0);
  ledger.charge("ann", {539, 0}, noon);
  CHECK_FALSE(ledger.standings("ann", all, noon)[0].is_nearly_spent());
  ledger.charge("ann", {1, 0}, noon);
  CHECK(ledger.standings("ann", all, noon)[0].is_nearly_spent());
  CHECK_FALSE(ledger.standings("ann", all, noon)[0].is_spent());
  CHECK_FALSE(ledger.standings("ann", all, noon)[1].is_nearly_spent());
}

TEST_CASE("a clock that is set back renews nothing, and no use is negative") {
  usage_ledger ledger;
  ledger.charge("ann", {60, 10}, midnight);
  ledger.charge("ann", {60, 10}, noon);
  CHECK(used(ledger, quota::minutes_per_day, noon) == 2);
  CHECK(used(ledger, quota::minutes_per_day, midnight) == 2);
  ledger.charge("ann", {-60, -10}, midnight);
  CHECK(used(ledger, quota::minutes_per_day, midnight) == 2);
  CHECK(used(ledger, quota::tokens_per_day, midnight) == 20);
}

TEST_CASE("what is written is read again, without months that are over") {
  usage_ledger ledger;
  ledger.charge("ann", {61.25, 12345678901}, noon);
  ledger.charge("bob", {0.5, 0}, december);
  const auto again = usage_ledger::read(ledger.written(noon));
  REQUIRE(again);
  CHECK(again->standings("ann", {}, noon)[0].used == ledger.standings("ann", {}, noon)[0].used);
  CHECK(again->standings("ann", {}, noon)[3].used == 12345678901);
  CHECK(again->standings("bob", {}, december)[1].used == 0.5 / 60);
  CHECK(ledger.written(december).find("ann") == std::string::npos);
  CHECK(usage_ledger::read(usage_ledger().written(noon)));
}

TEST_CASE("a text that is not a ledger is not read") {
  usage_ledger ledger;
  ledger.charge("ann", {60, 10}, noon);
  const auto good = ledger.written(noon);
  for (const std::string& text :
       {std::string(), std::string("parley usage 2\n"), std::string("nonsense"), good.substr(0, good.size() - 4),
        good + "bob 1 2\n", good + "bob 1 -2 3 4 5 6\n", good + "bob 1 nan 3 4 5 6\n", good + "bob 1 2 3 4 5 6 7\n"})
    CHECK_FALSE(usage_ledger::read(text));
}
