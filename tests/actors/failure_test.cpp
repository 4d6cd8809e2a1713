#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>

using namespace parley;
using namespace parley::tests;
using actors::worker_state;

namespace {

/// Answers the first `failures` units with a failure, the later ones with `listen`.
stub_script::unit_answer fail_first(int failures, conversation::failure_kind kind) {
  return
      [left = std::make_shared<int>(failures), kind](conversation::step_output listen, const stub_script::sink& tell) {
        if ((*left)-- > 0) return tell(conversation::failed{listen.session, listen.unit, kind, "it went wrong"});
        tell(std::move(listen));
      };
}

/// A link that throws when its session uses it, which ends the session actor.
class broken_link : public recording_link {
public:
  void send(std::shared_ptr<const std::string> frame) override {
    if (frame->find("response.output.delta") != std::string::npos) throw std::runtime_error("planted");
    recording_link::send(std::move(frame));
  }
};

} // namespace

TEST_CASE("an engine that cannot be loaded leaves a core without workers, and says why") {
  stub_script script;
  script.fail_to_load("no such checkpoint: nowhere");
  test_server core;
  core.add(script);
  CHECK(core.wait_for(worker_state::down).reason == "no such checkpoint: nowhere");
  CHECK_FALSE(core.core().ready().ready);
  auto client = core.connect();
  CHECK(client.link->next("error")["error"]["code"] == "service_unavailable");
  CHECK(client.link->closed() == 1013);
  client.vanish();
  const auto status = core.status();
  CHECK(status["workers"][0]["state"] == "down");
  CHECK(status["workers"][0]["reason"] == "no such checkpoint: nowhere");
}

TEST_CASE("when the engine dies, duplex sessions are told in their own words") {
  stub_script script;
  auto settings = test_server::quick_settings();
  settings.limits.failover_seconds = 0.05;
  test_server core(settings);
  core.add_up(script);
  auto current = core.connect();
  auto legacy = core.connect();
  current.init();
  legacy.send_text(R"({"type":"session.update","session":{"instructions":"Hi"}})");
  legacy.link->next("session.created");
  script.die();
  CHECK(current.step("session.closed")["reason"] == "backend_error");
  CHECK(current.link->closed() == 1011);
  CHECK(legacy.link->next("session.closed")["reason"] == "error");
  CHECK(legacy.link->closed() == 1011);
  CHECK(core.wait_for(worker_state::down).reason == "the device is on fire");
  current.vanish();
  legacy.vanish();
  CHECK(core.all_free());
}

TEST_CASE("a chat session that finds no other worker in time is told") {
  auto settings = test_server::quick_settings();
  settings.limits.failover_seconds = 0.05;
  settings.queue.no_worker_seconds = 20;
  stub_script script;
  test_server core(settings);
  core.add_up(script);
  auto client = core.connect("chat");
  client.init();
  script.die();
  client.send_text(chat_frame("Hi"));
  CHECK(client.link->next("session.closed")["reason"] == "backend_error");
  CHECK(client.link->closed() == 1011);
  client.vanish();
}

TEST_CASE("a chat session goes on with another worker: the turn is answered, once") {
  stub_script first(2);
  stub_script second(1);
  test_server core;
  core.add_up(first);
  auto client = core.connect("chat");
  client.init();
  core.add_up(second);
  first.die();
  client.send_text(chat_frame("Hi"));
  CHECK(client.link->next("response.done")["text"] == "Hello there.");
  client.send_text(chat_frame("Again"));
  CHECK(client.link->next("response.done")["text"] == "Hello there.");
  CHECK(second.eventually([](const auto& s) { return s.template all<conversation::submit_turn>().size() == 2; }));
  CHECK(client.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("a session whose worker dies before it began is served by another one") {
  stub_script first(2);
  stub_script second(2);
  test_server core;
  core.add_up(first);
  auto victim = core.connect();
  auto other = core.connect();
  victim.init();
  other.link->next("session.queue_done");
  core.add_up(second);
  first.die();
  CHECK(victim.step()["kind"] == "listen");
  other.init();
  CHECK(other.step()["kind"] == "listen");
  CHECK(other.close_session() == "user_stop");
  CHECK(victim.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("those who wait are sent away when the last worker has been gone for a while") {
  stub_script script(1);
  test_server core;
  core.add_up(script);
  auto first = core.connect();
  first.init();
  auto waiting = core.connect();
  waiting.link->next("session.queued");
  script.die();
  first.send_text(append_frame());
  CHECK(waiting.link->next("error")["error"]["code"] == "service_unavailable");
  CHECK(waiting.link->closed() == 1013);
  waiting.vanish();
  first.vanish();
  CHECK(core.all_free());
}

TEST_CASE("a step that fails costs one session one chunk") {
  stub_script script;
  script.answer_units_with(fail_first(2, conversation::failure_kind::inference));
  test_server core;
  core.add_up(script);
  auto client = core.connect();
  auto neighbour = core.connect();
  client.init();
  neighbour.init();
  for (int i = 0; i < 2; ++i) {
    CHECK(client.step("error")["error"]["code"] == "inference_error");
  }
  CHECK(client.step()["kind"] == "listen");
  CHECK(neighbour.step()["kind"] == "listen");
  for (const auto& event : neighbour.link->events()) CHECK(event["type"] != "error");
  client.close_session();
  neighbour.close_session();
  CHECK(core.all_free());
}

TEST_CASE("three failing steps in a row end a session") {
  stub_script script;
  script.answer_units_with(fail_first(3, conversation::failure_kind::inference));
  test_server core;
  core.add_up(script);
  auto client = core.connect();
  client.init();
  for (int i = 0; i < 3; ++i) {
    CHECK(client.step("error")["error"]["code"] == "inference_error");
  }
  CHECK(client.link->next("session.closed")["reason"] == "backend_error");
  CHECK(client.link->closed() == 1011);
  client.vanish();
  CHECK(core.all_free());
}

TEST_CASE("a full context ends a duplex session") {
  stub_script script;
  script.answer_units_with(fail_first(1, conversation::failure_kind::context_full));
  test_server core;
  core.add_up(script);
  auto client = core.connect();
  client.init();
  CHECK(client.step("session.closed")["reason"] == "context_full");
  CHECK(client.link->closed() == 1000);
  client.vanish();
  CHECK(core.all_free());
}

TEST_CASE("a session actor that dies has its engine session closed and its slot freed") {
  stub_script script(1);
  test_server core;
  core.add_up(script);
  auto client = core.connect("audio", std::make_shared<broken_link>());
  client.init();
  auto waiting = core.connect();
  waiting.link->next("session.queued");
  client.send_text(append_frame());
  CHECK(client.link->closed() == 1011);
  waiting.init();
  CHECK(waiting.close_session() == "user_stop");
  CHECK(core.all_free());
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 0 && s.most_open() == 1; }));
}
