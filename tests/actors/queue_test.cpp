#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

using namespace parley;
using namespace parley::tests;

namespace {
constexpr int slots = 4;
constexpr int sessions = 200;
} // namespace

TEST_CASE("200 sessions queue for 4 slots in order, each told its position") {
  stub_script script(slots);
  test_server core;
  core.add_up(script);
  std::vector<test_client> holders;
  for (int i = 0; i < slots; ++i) {
    holders.push_back(core.connect());
    holders.back().init();
  }
  std::vector<test_client> line;
  for (int i = 0; i < sessions; ++i) {
    line.push_back(core.connect());
    const auto queued = line.back().link->next("session.queued");
    CHECK(queued["position"] == i + 1);
    CHECK(queued["queue_length"] == i + 1);
    CHECK(queued["estimated_wait_s"].get<double>() >= 0);
    CHECK(queued["ticket_id"].get<std::string>().starts_with("ticket_"));
  }
  CHECK(core.status()["queue"]["length"] == sessions);
  // One slot at a time: exactly the first in line is served, and nobody else.
  int served = 0;
  const auto serve_next = [&] {
    line[served].link->next("session.queue_done");
    line[served].init();
    for (int behind = served + 1; behind < sessions; ++behind)
      for (const auto& event : line[behind].link->events()) REQUIRE(event["type"] != "session.queue_done");
    ++served;
  };
  for (auto& holder : holders) {
    holder.close_session();
    serve_next();
  }
  while (served < sessions) {
    line[served - slots].close_session();
    serve_next();
  }
  for (int i = sessions - slots; i < sessions; ++i) line[i].close_session();
  for (const auto& client : line) {
    int before = sessions + 1;
    for (const auto& event : client.link->events()) {
      if (event["type"] != "session.queued" && event["type"] != "session.queue_update") continue;
      CHECK(event["position"] <= before);
      before = event["position"];
    }
  }
  CHECK(core.all_free());
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 0 && s.most_open() <= slots; }));
}

TEST_CASE("half of 200 sessions vanish at random points and no slot is lost") {
  const auto seed = GENERATE(1u, 2u, 3u);
  INFO("seed " << seed);
  std::mt19937 random(seed);
  stub_script script(slots);
  test_server core;
  core.add_up(script);
  enum class leaves { never, at_once, queued, granted, initializing, active, after_append };
  std::vector<test_client> line;
  std::vector<leaves> plan;
  for (int i = 0; i < sessions; ++i) {
    plan.push_back(i % 2 == 0 ? leaves::never : static_cast<leaves>(1 + random() % 6));
    line.push_back(core.connect());
    if (plan.back() == leaves::at_once) line.back().vanish();
  }
  // Waiting clients leave in random order, from all over the queue.
  std::vector<int> order;
  for (int i = slots; i < sessions; ++i)
    if (plan[i] == leaves::queued) order.push_back(i);
  std::shuffle(order.begin(), order.end(), random);
  for (const int i : order) line[i].vanish();
  for (int i = 0; i < sessions; ++i) {
    auto& client = line[i];
    if (plan[i] == leaves::at_once) continue;
    if (plan[i] == leaves::queued) {
      if (i < slots) client.vanish();
      continue;
    }
    client.link->next("session.queue_done");
    if (plan[i] == leaves::granted) {
      client.vanish();
      continue;
    }
    client.send_text(R"({"type":"session.init","payload":{}})");
    if (plan[i] == leaves::initializing) {
      client.vanish();
      continue;
    }
    client.link->next("session.created");
    if (plan[i] == leaves::active) {
      client.vanish();
      continue;
    }
    client.send_text(append_frame());
    if (plan[i] == leaves::after_append) {
      client.vanish();
      continue;
    }
    client.link->next("response.output.delta");
    CHECK(client.close_session() == "user_stop");
  }
  CHECK(core.all_free());
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 0 && s.most_open() <= slots; }));
  // Afterwards all slots are available again.
  std::vector<test_client> after;
  for (int i = 0; i < slots; ++i) {
    after.push_back(core.connect());
    after.back().init();
  }
  for (const auto& client : after)
    for (const auto& event : client.link->events()) CHECK(event["type"] != "session.queued");
  for (auto& client : after) client.close_session();
}

TEST_CASE("a full queue, and no queue at all") {
  auto settings = test_server::quick_settings();
  settings.queue.capacity = GENERATE(0, 1);
  stub_script script(1);
  test_server core(settings);
  core.add_up(script);
  auto first = core.connect();
  first.init();
  if (settings.queue.capacity == 0) {
    auto second = core.connect();
    CHECK(second.link->next("error")["error"]["code"] == "worker_busy");
    CHECK(second.link->closed() == 1013);
    second.vanish();
  } else {
    auto second = core.connect();
    CHECK(second.link->next("session.queued")["position"] == 1);
    auto third = core.connect();
    CHECK(third.link->next("error")["error"]["code"] == "queue_full");
    CHECK(third.link->closed() == 1013);
    third.vanish();
    second.send_text(R"({"type":"session.close"})");
    CHECK(second.link->next("session.closed")["reason"] == "user_stop");
    second.vanish();
  }
  first.close_session();
  CHECK(core.all_free());
}

TEST_CASE("slots come and go with what the engine keeps up with, and nobody who has one loses it") {
  stub_script script(1);
  test_server core;
  core.add_up(script);
  const auto offered = [&](int slots) {
    while (core.wait_for(actors::worker_state::up).info.slots != slots) {
    }
  };
  const auto talk = [](test_client& who) { who.step(); };
  auto first = core.connect();
  first.init();
  auto second = core.connect(), third = core.connect();
  second.link->next("session.queued");
  third.link->next("session.queued");
  script.change_slots(3);
  talk(first); // the engine reports its capacity around a pass
  offered(3);
  for (auto* next : {&second, &third}) {
    next->link->next("session.queue_done");
    next->init();
  }
  script.change_slots(1);
  talk(first);
  offered(1);
  for (auto* each : {&first, &second, &third}) talk(*each);
  CHECK(core.status()["workers"][0]["busy"] == 3);
  auto fourth = core.connect();
  fourth.link->next("session.queued");
  CHECK(first.close_session() == "user_stop");
  CHECK(second.close_session() == "user_stop");
  talk(third);
  for (const auto& event : fourth.link->events()) CHECK(event["type"] != "session.queue_done");
  CHECK(third.close_session() == "user_stop");
  fourth.link->next("session.queue_done");
  fourth.init();
  fourth.close_session();
  CHECK(core.all_free());
}
