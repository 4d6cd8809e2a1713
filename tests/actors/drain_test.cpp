#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

using namespace parley;
using namespace parley::tests;

TEST_CASE("a drain tells everybody and waits for the last session") {
  stub_script script(2);
  test_server core;
  core.add_up(script);
  auto active = core.connect();
  active.init();
  auto connected = core.connect();
  connected.link->next("session.queue_done");
  auto waiting = core.connect();
  waiting.link->next("session.queued");

  core.core().drain();

  CHECK(core.core().live_sessions() == 0);
  CHECK(active.link->next("session.go_away")["reason"] == "server_shutdown");
  CHECK(active.link->next("session.closed")["reason"] == "server_shutdown");
  CHECK(active.link->closed() == 1001);
  CHECK(connected.link->next("session.closed")["reason"] == "server_shutdown");
  CHECK(connected.link->closed() == 1001);
  CHECK(waiting.link->next("error")["error"]["code"] == "service_unavailable");
  CHECK(waiting.link->closed() == 1013);

  CHECK(core.core().ready().reason == "the server is shutting down");
  auto late = core.connect();
  CHECK(late.link->next("error")["error"]["code"] == "service_unavailable");
  CHECK(late.link->closed() == 1013);
  for (auto* client : {&active, &connected, &waiting, &late}) client->vanish();
  CHECK(core.all_free());
}

TEST_CASE("sessions go on during the grace of a drain, and may end by themselves") {
  auto settings = test_server::quick_settings();
  settings.limits.drain_seconds = 30;
  stub_script script;
  test_server core(settings);
  core.add_up(script);
  auto client = core.connect();
  client.init();
  std::thread drain([&] { core.core().drain(); });
  client.link->next("session.go_away");
  CHECK(client.step()["kind"] == "listen");
  CHECK(client.close_session() == "user_stop");
  drain.join();
  CHECK(core.core().live_sessions() == 0);
}

TEST_CASE("a core that is torn down with open sessions closes their links") {
  stub_script script(1);
  test_client active;
  test_client waiting;
  {
    test_server core;
    core.add_up(script);
    active = core.connect();
    active.init();
    waiting = core.connect();
    waiting.link->next("session.queued");
    active.handle.reset();
    waiting.handle.reset();
  }
  CHECK(active.link->closed() == 1011);
  CHECK(waiting.link->closed() == 1011);
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 0; }));
}

TEST_CASE("a core can be torn down while its model is being loaded") {
  stub_script script;
  script.hold_loading();
  std::thread loader;
  {
    test_server core;
    core.add(script);
    core.wait_for(actors::worker_state::loading);
    loader = std::thread([&] { script.allow_load(); });
  }
  loader.join();
}
