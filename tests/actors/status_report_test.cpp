#include "actors/status_report.hpp"

#include "tests/actors/test_house.hpp"

#include <catch2/catch.hpp>

using namespace parley;
using namespace parley::tests;

TEST_CASE("the status tells workers, queue and sessions") {
  stub_script script(2);
  test_house house;
  house.add_up(script);
  auto audio = house.connect("audio");
  audio.init();
  auto chat = house.connect("chat");
  chat.link->next("session.queue_done");
  auto waiting = house.connect("video");
  waiting.link->next("session.queued");
  CHECK(house.status()["idle_workers"] == 0);
  const auto status = house.status();
  CHECK(status["total_workers"] == 1);
  const auto& worker = status["workers"].at(0);
  CHECK(worker["id"] == 1);
  CHECK(worker["node"] == "local");
  CHECK(worker["device"] == "none");
  CHECK(worker["slots"] == 2);
  CHECK(worker["busy"] == 2);
  CHECK(worker["state"] == "up");
  CHECK(worker["model"] == "stub");
  CHECK(status["queue"]["length"] == 1);
  CHECK(status["queue"]["waits"].size() == 1);
  CHECK(status["sessions"]["audio"]["active"] == 1);
  CHECK(status["sessions"]["chat"]["connected"] == 1);
  CHECK(status["sessions"]["video"]["queued"] == 1);
  for (auto* client : {&audio, &chat, &waiting}) client->vanish();
  CHECK(house.all_free());
  CHECK(house.status()["idle_workers"] == 1);
}

TEST_CASE("a status without anything is JSON too") {
  const auto status = nlohmann::json::parse(actors::status_report({}));
  CHECK(status["workers"].empty());
  CHECK(status["queue"]["length"] == 0);
  CHECK(status["sessions"]["chat"].empty());
}
