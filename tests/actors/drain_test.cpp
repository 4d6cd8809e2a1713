#include "tests/actors/test_house.hpp"

#include <catch2/catch.hpp>

using namespace parley;
using namespace parley::tests;

TEST_CASE("a drain tells everybody and waits for the last session") {
  stub_script script(2);
  test_house house;
  house.add_up(script);
  auto active = house.connect();
  active.init();
  auto connected = house.connect();
  connected.link->next("session.queue_done");
  auto waiting = house.connect();
  waiting.link->next("session.queued");

  house.house().drain();

  CHECK(house.house().live_sessions() == 0);
  CHECK(active.link->next("session.go_away")["reason"] == "server_shutdown");
  CHECK(active.link->next("session.closed")["reason"] == "server_shutdown");
  CHECK(active.link->closed() == 1001);
  CHECK(connected.link->next("session.closed")["reason"] == "server_shutdown");
  CHECK(connected.link->closed() == 1001);
  CHECK(waiting.link->next("error")["error"]["code"] == "service_unavailable");
  CHECK(waiting.link->closed() == 1013);

  CHECK(house.house().ready().reason == "the server is shutting down");
  auto late = house.connect();
  CHECK(late.link->next("error")["error"]["code"] == "service_unavailable");
  CHECK(late.link->closed() == 1013);
  for (auto* client : {&active, &connected, &waiting, &late}) client->vanish();
  CHECK(house.all_free());
}

TEST_CASE("sessions go on during the grace of a drain, and may end by themselves") {
  auto settings = test_house::quick_settings();
  settings.limits.drain_seconds = 30;
  stub_script script;
  test_house house(settings);
  house.add_up(script);
  auto client = house.connect();
  client.init();
  std::thread drain([&] { house.house().drain(); });
  client.link->next("session.go_away");
  CHECK(client.step()["kind"] == "listen");
  CHECK(client.say_goodbye() == "user_stop");
  drain.join();
  CHECK(house.house().live_sessions() == 0);
}

TEST_CASE("a house that is torn down with open sessions closes their links") {
  stub_script script(1);
  test_client active;
  test_client waiting;
  {
    test_house house;
    house.add_up(script);
    active = house.connect();
    active.init();
    waiting = house.connect();
    waiting.link->next("session.queued");
    active.inbox.reset();
    waiting.inbox.reset();
  }
  CHECK(active.link->closed() == 1011);
  CHECK(waiting.link->closed() == 1011);
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 0; }));
}

TEST_CASE("a house can be torn down while its model is being loaded") {
  stub_script script;
  script.hold_loading();
  std::thread loader;
  {
    test_house house;
    house.add(script);
    house.wait_for(actors::worker_state::loading);
    loader = std::thread([&] { script.let_load(); });
  }
  loader.join();
}
