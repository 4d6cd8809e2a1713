#include "inference/engine/page_budget.hpp"

#include <catch2/catch.hpp>

using namespace parley::inference;
using waiting = std::vector<session_id>;

TEST_CASE("pages go to the oldest sessions first, and nobody overtakes") {
  const std::vector<page_claim> claims{{7, 3, 2}, {5, 1, 4}, {9, 2, 3}, {6, 4, 0}};
  CHECK(without_pages(claims, 9).empty());
  CHECK(without_pages(claims, 8) == waiting{7});
  CHECK(without_pages(claims, 6) == waiting{9, 7}); // 7 would fit, but 9 is older
  CHECK(without_pages(claims, 3) == waiting{5, 9, 7});
  CHECK(without_pages(claims, 0) == waiting{5, 9, 7}); // 6 needs no page
  CHECK(without_pages({}, 0).empty());
}

TEST_CASE("at first every session is expected to need its whole context") {
  const page_forecast forecast(40, 10);
  CHECK(forecast.sessions({}) == 4);
  CHECK(forecast.sessions(std::vector{1, 2, 3, 4}) == 4);
  CHECK(page_forecast(5, 5).sessions({}) == 1);
}

TEST_CASE("sessions that end early make room for more, as long as another one can reach the limit") {
  page_forecast forecast(40, 10);
  for (auto i = 0; i < 100; ++i) forecast.ended(2);
  CHECK(forecast.usual() == Approx(2).margin(0.1));
  CHECK(forecast.sessions({}) == 15); // fifteen usual ones would leave ten pages for another
  CHECK(forecast.sessions(std::vector{10, 10, 10}) == 4);
  CHECK(forecast.sessions(std::vector{10, 10, 11}) == 3); // 9 pages are left
  CHECK(forecast.sessions(std::vector{10, 10, 10, 10}) == 4);
  for (auto i = 0; i < 100; ++i) forecast.ended(100); // counts as the limit
  CHECK(forecast.usual() == Approx(10).margin(0.1));
}
