#include "actors/queue/trial_queue.hpp"
#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <vector>

using namespace parley;
using namespace parley::tests;
using actors::worker_state;

// Another worker takes over a session: what its client sees, and what the workers do.

namespace {

void talk(test_client& client, int units) {
  for (int i = 0; i < units; ++i) {
    CHECK(client.step()["kind"] == "listen");
  }
}

bool move(test_server& core, const std::string& session) {
  std::promise<bool> answer;
  core.core().move_session(session, [&](bool known) { answer.set_value(known); });
  return answer.get_future().get();
}

auto units(const stub_script& script) {
  return script.all<conversation::submit_unit>();
}

} // namespace

TEST_CASE("a duplex session goes on with another worker: what it was is repeated there, nothing is said twice") {
  stub_script first;
  stub_script second;
  test_server core;
  core.add_up(first);
  auto client = core.connect();
  client.init();
  talk(client, 3);
  core.add_up(second);
  first.die();
  talk(client, 2);
  CHECK(second.eventually([](const auto& s) { return units(s).size() == 5; }));
  CHECK(second.eventually([](const auto& s) {
    const auto all = units(s);
    return all.at(2).replay && all.at(2).replay->finished && !all.at(3).replay && all.at(3).unit == 3;
  }));
  int answers = 0;
  for (const auto& event : client.link->events()) answers += event["type"] == "response.output.delta";
  CHECK(answers == 5);
  CHECK(client.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("a session waits for a worker that comes back in time") {
  stub_script first;
  stub_script second;
  test_server core; // without any worker clients wait 0.05 s, running sessions 30 s
  core.add_up(first);
  auto client = core.connect();
  client.init();
  talk(client, 1);
  first.die();
  client.send_text(append_frame());
  core.wait_for(worker_state::down);
  client.send_text(append_frame());
  core.add_up(second);
  for (int i = 0; i < 2; ++i) CHECK(client.link->next("response.output.delta")["chunk_index"] == i + 1);
  CHECK(client.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("a session is lost a second time while it is being taken up") {
  stub_script first;
  stub_script second;
  stub_script third;
  second.die(); // when it replays the first unit
  test_server core;
  core.add_up(first);
  auto client = core.connect();
  client.init();
  talk(client, 2);
  core.add_up(second);
  first.die();
  client.send_text(append_frame());
  core.wait_for(worker_state::down);
  core.wait_for(worker_state::down);
  core.add_up(third);
  CHECK(client.link->next("response.output.delta")["chunk_index"] == 2);
  CHECK(client.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("what does not fit into the replay buffer ends with its worker") {
  auto settings = test_server::quick_settings();
  settings.limits.journal_bytes = 1000;
  stub_script first;
  stub_script second;
  test_server core(settings);
  core.add_up(first);
  auto client = core.connect();
  client.init();
  talk(client, 1);
  core.add_up(second);
  first.die();
  CHECK(client.step("session.closed")["reason"] == "backend_error");
  CHECK(client.link->closed() == 1011);
  client.vanish();
  CHECK(core.all_free());
}

TEST_CASE("an operator moves a session; its old place is free again") {
  stub_script first(1);
  stub_script second(1);
  test_server core;
  core.add_up(first);
  auto client = core.connect();
  const auto id = client.init()["session_id"].get<std::string>();
  talk(client, 2);
  CHECK_FALSE(move(core, "sess_nobody"));
  CHECK(move(core, id)); // nowhere to move to yet, so it stays
  talk(client, 1);
  core.add_up(second);
  CHECK(first.eventually([](const auto& s) { return s.open_sessions() == 0; }));
  talk(client, 1);
  CHECK(second.eventually([](const auto& s) { return units(s).size() == 4; }));
  auto other = core.connect();
  other.init();
  talk(other, 1);
  CHECK(other.close_session() == "user_stop");
  CHECK(client.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("a drained worker's sessions go elsewhere, chat too") {
  stub_script first;
  stub_script second;
  test_server core;
  core.add_up(first);
  auto client = core.connect();
  client.init();
  talk(client, 1);
  auto chat = core.connect("chat");
  chat.init();
  chat.send_text(chat_frame("Hi"));
  chat.link->next("response.done");
  core.add_up(second);
  std::promise<bool> drained;
  core.core().drain_worker(1, true, [&](bool known) { drained.set_value(known); });
  CHECK(drained.get_future().get());
  CHECK(first.eventually([](const auto& s) { return s.open_sessions() == 0; }));
  talk(client, 1);
  chat.send_text(chat_frame("Again"));
  CHECK(chat.link->next("response.done")["text"] == "Hello there.");
  CHECK(chat.close_session() == "user_stop");
  CHECK(client.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("a session that ends while it waits for another worker leaves the line") {
  stub_script first;
  test_server core;
  core.add_up(first);
  auto client = core.connect();
  const auto id = client.init()["session_id"].get<std::string>();
  CHECK(move(core, id));
  talk(client, 1);
  CHECK(client.close_session() == "user_stop");
  CHECK(core.all_free());
}

// ---- work that kills workers

namespace {

/// A unit with force_listen kills the engine, as a stand-in for anything that ends a process.
void die_of_poison(stub_script& script) {
  script.answer_with([&script](const conversation::command& order, const stub_script::sink& tell) {
    const auto* unit = std::get_if<conversation::submit_unit>(&order);
    if (unit && unit->force_listen && !unit->replay) throw std::runtime_error("poison");
    script.answer_as_usual(order, tell);
  });
}

int workers_up(test_server& core) {
  const auto workers = core.status()["workers"];
  return static_cast<int>(
      std::count_if(workers.begin(), workers.end(), [](const auto& each) { return each["state"] == "up"; }));
}

} // namespace

TEST_CASE("what two workers died of goes to no third one, and only its session ends") {
  std::vector<std::unique_ptr<stub_script>> scripts;
  test_server core;
  for (int i = 0; i < 4; ++i) {
    die_of_poison(*scripts.emplace_back(std::make_unique<stub_script>(8)));
    if (i < 3) core.add_up(*scripts.back());
  }
  std::vector<test_client> others;
  for (int i = 0; i < 8; ++i) {
    others.push_back(core.connect());
    others.back().init();
    talk(others.back(), 2);
  }
  auto attacker = core.connect();
  attacker.init();
  attacker.send_text(append_frame(16'000, true));
  const auto why = attacker.link->next("error");
  CHECK(why["error"]["code"] == "inference_error");
  CHECK(why["error"]["message"] == "two workers were lost with the same work; no third one gets it");
  CHECK(attacker.link->next("session.closed")["reason"] == "backend_error");
  CHECK(attacker.link->closed() == 1011);
  for (auto& other : others) talk(other, 2);
  CHECK(workers_up(core) == 1);
  for (auto& other : others) CHECK(other.close_session() == "user_stop");
  attacker.vanish();
  CHECK(core.all_free());
}

TEST_CASE("who had work under way beside the poison is tried alone, and goes on") {
  stub_script first(8);
  stub_script second(8);
  stub_script third(8);
  // The first worker answers nobody, and dies once all sessions have spoken.
  std::atomic<int> heard = 0;
  first.answer_with([&](const conversation::command& order, const stub_script::sink&) {
    if (std::holds_alternative<conversation::submit_unit>(order) && ++heard == 4) throw std::runtime_error("poison");
  });
  die_of_poison(second);
  test_server core;
  core.add_up(first);
  std::vector<test_client> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(core.connect());
    clients.back().init();
  }
  for (int i = 0; i < 4; ++i) clients[i].send_text(append_frame(16'000, i == 1));
  core.wait_for(worker_state::down);
  core.add_up(second);
  core.wait_for(worker_state::down);
  core.add_up(third);
  CHECK(clients[1].link->next("session.closed")["reason"] == "backend_error");
  for (int i : {0, 2, 3}) {
    CHECK(clients[i].link->next("response.output.delta")["kind"] == "listen");
    talk(clients[i], 1);
    CHECK(clients[i].close_session() == "user_stop");
  }
  clients[1].vanish();
  CHECK(core.all_free());
}

TEST_CASE("an open that two workers died of goes to no third one") {
  stub_script first;
  stub_script second;
  stub_script third;
  for (auto* script : {&first, &second, &third}) script->die_of_opens();
  test_server core;
  for (auto* script : {&first, &second, &third}) core.add_up(*script);
  auto client = core.connect();
  client.send_text(R"({"type":"session.init","payload":{}})");
  CHECK(client.link->next("error")["error"]["code"] == "inference_error");
  CHECK(client.link->next("session.closed")["reason"] == "backend_error");
  CHECK(workers_up(core) == 1);
  client.vanish();
  CHECK(core.all_free());
}

TEST_CASE("trials: one at a time on each worker, in the order in which they were asked for") {
  actors::trial_queue trials;
  CHECK(trials.ask(1, 10));
  CHECK(trials.ask(1, 10));
  CHECK_FALSE(trials.ask(1, 11));
  CHECK_FALSE(trials.ask(1, 12));
  CHECK(trials.ask(2, 20));
  CHECK_FALSE(trials.end(11)); // it was still waiting
  CHECK(trials.end(10) == std::optional<actors::ticket_key>(12));
  CHECK_FALSE(trials.end(99));
  CHECK_FALSE(trials.end(12));
  CHECK(trials.ask(1, 13));
  CHECK_FALSE(trials.ask(1, 14));
  trials.forget(1);
  CHECK_FALSE(trials.end(13));
  CHECK(trials.ask(1, 15));
}
