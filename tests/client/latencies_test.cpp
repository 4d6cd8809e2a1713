#include "client/latencies.hpp"

#include <catch2/catch.hpp>

using namespace parley::client;

TEST_CASE("quantiles are measured times, by nearest rank") {
  latencies times;
  for (int i = 20; i >= 1; --i) times.add(latencies::seconds(i));
  CHECK(times.quantile(0.5).count() == 10);
  CHECK(times.quantile(0.95).count() == 19);
  CHECK(times.quantile(1).count() == 20);
  CHECK(times.quantile(0).count() == 1);
}

TEST_CASE("few measurements and none") {
  latencies times;
  CHECK(times.empty());
  CHECK(times.quantile(0.5).count() == 0);
  times.add(latencies::seconds(3));
  CHECK(times.quantile(0.5).count() == 3);
  CHECK(times.quantile(0.95).count() == 3);
}

TEST_CASE("times are shown in milliseconds") {
  CHECK(milliseconds_text(latencies::seconds(0.1234)) == "123.4 ms");
  CHECK(milliseconds_text(latencies::seconds(0)) == "0.0 ms");
  CHECK(milliseconds_text(latencies::seconds(12)) == "12000.0 ms");
}
