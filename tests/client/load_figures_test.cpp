#include "client/load_figures.hpp"

#include "protocol/json/document.hpp"

#include <catch2/catch.hpp>

using namespace parley::client;
namespace json = parley::protocol::json;

namespace {

load_figures some() {
  load_figures f;
  f.asked = 2;
  f.held = 2;
  f.completed = 1;
  f.units = 102;
  f.unanswered = 2;
  f.gaps = 1;
  f.gap_seconds = 0.5;
  f.sound_seconds = 10;
  f.errors["queue_full"] = 3;
  for (int i = 1; i <= 100; ++i) {
    f.answers.push_back({static_cast<float>(i) / 10, static_cast<float>(i) / 1000});
    ++f.answered;
  }
  f.queue_done.add(latencies::seconds(0.25));
  return f;
}

double milliseconds(const json::document& doc, const char* what, const char* which) {
  return json::to_double(json::member(json::member(json::member(json::root(doc), "milliseconds"), what), which))
      .value();
}

} // namespace

TEST_CASE("figures of several threads become one") {
  auto all = some();
  all.merge(some());
  CHECK(all.asked == 4);
  CHECK(all.answered == 200);
  CHECK(all.errors.at("queue_full") == 6);
  CHECK(all.queue_done.count() == 2);
  CHECK(all.unit_latency().count() == 200);
  CHECK(all.deadline_misses() == 4);
  CHECK(all.gap_seconds == Approx(1));
}

TEST_CASE("the table names every figure") {
  const auto table = load_table(some(), {.seconds = 10, .cpu_seconds = 0.5, .threads = 1, .most_at_once = 2});
  CHECK_THAT(table, Catch::Contains("sessions            2 requested, 2 held (2 at once), 1 completed\n"));
  CHECK_THAT(table, Catch::Contains("unit latency             100     50.0 ms     95.0 ms     99.0 ms    100.0 ms\n"));
  CHECK_THAT(table, Catch::Contains("first text                 0           -"));
  CHECK_THAT(table, Catch::Contains("deadline misses     2 of 102 (1.96 %)\n"));
  CHECK_THAT(table, Catch::Contains("audio gaps          1, together 0.50 s, in 10.00 s of sound\n"));
  CHECK_THAT(table, Catch::Contains("errors              queue_full 3\n"));
  CHECK_THAT(load_table({}, {}), Catch::Contains("errors              none\n"));
}

TEST_CASE("the JSON holds the same") {
  const auto text = load_json(some(), {.seconds = 10, .cpu_seconds = 0.5, .threads = 1, .most_at_once = 2});
  const auto doc = json::scan(text);
  REQUIRE(doc.outcome == json::verdict::good);
  CHECK(milliseconds(doc, "unit_latency", "p95") == Approx(95));
  CHECK(milliseconds(doc, "queue_done", "max") == Approx(250));
  CHECK(json::to_integer(json::member(json::root(doc), "deadline_misses")) == 2);
  CHECK(json::to_integer(json::member(json::member(json::root(doc), "errors"), "queue_full")) == 3);
  CHECK(json::scan(load_json({}, {})).outcome == json::verdict::good);
}

TEST_CASE("the picture shows each second's latencies and their distribution") {
  const auto svg = load_plot(some(), {.seconds = 10});
  CHECK_THAT(svg, Catch::StartsWith("<svg ") && Catch::EndsWith("</svg>\n"));
  CHECK_THAT(svg, Catch::Contains("<polyline") && Catch::Contains("100 answers") && Catch::Contains("p99 99.0 ms"));
  CHECK(load_plot({}, {}).find("nan") == std::string::npos);
}
