#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

using namespace parley;
using namespace parley::tests;
using actors::worker_state;

// What a lost worker leaves behind, apart from what clients see (failover_test).

TEST_CASE("a session that cannot be replayed gives its new slot back at once, not when its client hangs up") {
  stub_script first;
  stub_script second(1);
  second.answer_with([](const conversation::command& order, const stub_script::sink& tell) {
    const auto* unit = std::get_if<conversation::submit_unit>(&order);
    if (unit && unit->replay)
      return tell(conversation::failed{unit->session, unit->unit, conversation::failure_kind::inference,
                                       "it cannot be repeated"});
    stub_script::answer_as_usual(order, tell);
  });
  test_server core;
  core.add_up(first);
  auto client = core.connect();
  client.init();
  client.step();
  core.add_up(second);
  first.die();
  client.send_text(append_frame());
  CHECK(client.link->next("session.closed")["reason"] == "backend_error");
  CHECK(core.all_free());
  CHECK(second.eventually([](const auto& s) { return s.open_sessions() == 0; }));
  auto next = core.connect();
  next.init();
  CHECK(next.step()["kind"] == "listen");
  CHECK(next.close_session() == "user_stop");
  client.vanish();
  CHECK(core.all_free());
}

TEST_CASE("those who lose their worker are served in the order in which they came") {
  stub_script first(3);
  stub_script second(1);
  test_server core;
  core.add_up(first);
  std::vector<test_client> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(core.connect());
    clients.back().init();
    clients.back().step();
  }
  first.die();
  clients[1].send_text(append_frame());
  core.wait_for(worker_state::down);
  core.add_up(second);
  // With one slot, the oldest client holds it, and each leaves it to the next.
  for (auto& client : clients) {
    CHECK(client.step()["kind"] == "listen");
    CHECK(client.close_session() == "user_stop");
  }
  CHECK(core.all_free());
}

TEST_CASE("a session that ends while its worker is lost leaves nothing in line") {
  stub_script first;
  stub_script second(1);
  test_server core;
  core.add_up(first);
  auto client = core.connect();
  client.init();
  first.die();
  client.send_text(append_frame());
  client.vanish();
  core.wait_for(worker_state::down);
  core.add_up(second);
  auto next = core.connect();
  next.init();
  CHECK(next.close_session() == "user_stop");
  CHECK(core.all_free());
}
