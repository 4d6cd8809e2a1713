#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

using namespace parley;
using namespace parley::tests;
using nlohmann::json;

// A client comes back over another connection: the server's side, without sockets.

namespace {

constexpr const char* asking = R"({"resume":true})";

/// Answers a unit with `said` in a single event.
auto saying(const std::string& said) {
  return [said](conversation::step_output delta, const stub_script::sink& tell) {
    delta.kind = conversation::output_kind::text;
    delta.text = said + std::to_string(delta.unit);
    tell(std::move(delta));
  };
}

/// Records whether anybody still holds a frame that was sent to it.
class frame_watcher final : public recording_link {
public:
  void send(std::shared_ptr<const std::string> frame) override {
    {
      const std::lock_guard lock(frames_mutex_);
      frames_.push_back(frame);
    }
    recording_link::send(std::move(frame));
  }

  /// Waits until nobody does: an actor that has ended releases frames a moment later.
  bool all_gone() const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const auto gone = [&] {
      const std::lock_guard lock(frames_mutex_);
      return std::all_of(frames_.begin(), frames_.end(), [](const auto& each) { return each.expired(); });
    };
    while (std::chrono::steady_clock::now() < until)
      if (gone()) return true;
    return false;
  }

private:
  mutable std::mutex frames_mutex_;
  std::vector<std::weak_ptr<const std::string>> frames_;
};

} // namespace

TEST_CASE("a client that comes back gets what it has missed, once") {
  stub_script script;
  script.answer_units_with(saying("word "));
  test_server core;
  core.add_up(script);
  auto client = core.connect("audio");
  const auto created = client.init(asking);
  CHECK(created["event_id"] == 1);
  CHECK(created["resume_seconds"] == 30);
  const std::string id = created["session_id"];
  CHECK(client.step()["event_id"] == 2);
  client.send_text(append_frame());
  client.send_text(append_frame());
  client.vanish();
  CHECK(script.eventually([](const auto& s) { return s.template all<conversation::submit_unit>().size() == 3; }));

  auto again = core.come_back(id, created["resume_token"], "2");
  const auto resumed = again.link->next("session.resumed");
  CHECK(resumed["session_id"] == id);
  CHECK(resumed["inputs"] == 3);
  CHECK(resumed["resume_token"] != created["resume_token"]);
  CHECK_FALSE(resumed.contains("event_id"));
  for (int event = 3; event <= 4; ++event) {
    const auto delta = again.link->next("response.output.delta");
    CHECK(delta["event_id"] == event);
    CHECK(delta["text"] == "word " + std::to_string(event - 2));
  }
  CHECK(again.step()["event_id"] == 5);
  CHECK(again.close_session() == "user_stop");
  CHECK(core.all_free());
  CHECK(core.metric(R"(parley_resumes_total{result="resumed"})") == "1");
}

TEST_CASE("a connection that seems to live is replaced, and what comes over it is late") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto client = core.connect("chat");
  const auto created = client.init(asking);
  auto again = core.come_back(created["session_id"], created["resume_token"], "1");
  CHECK(again.link->next("session.resumed")["inputs"] == 0);
  CHECK(client.link->closed() == 1008);
  client.send_text(R"({"type":"session.close"})");
  client.handle->binary();
  client.vanish();
  again.send_text(chat_frame("Hi"));
  CHECK(again.link->next("response.done")["text"] == "Hello there.");
  CHECK(again.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("a wrong claim is refused, and the session does not mind") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto client = core.connect("audio", {}, "mine");
  const std::string token = client.init(asking)["resume_token"];
  auto plain = core.connect("audio", {}, "plain");
  plain.init();
  const auto refused = [&](const std::string& id, const std::string& shown, std::optional<std::string> seen = {},
                           const std::string& key = "") {
    auto other = core.come_back(id, shown, std::move(seen), key);
    CHECK(other.link->next("error")["error"]["code"] == "resume_refused");
    CHECK(other.link->closed() == 1008);
    other.send_text("{}"); // the closed connection ignores it
    other.vanish();
  };
  refused("mine", "resume_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
  refused("mine", "");
  refused("nobody", token);
  refused("plain", token);
  refused("mine", token, "9");
  refused("mine", token, "x");
  refused("mine", token, "1", "another key");
  CHECK(client.step()["event_id"] == 2);

  client.vanish();
  auto again = core.come_back("mine", token, "2");
  const std::string next = again.link->next("session.resumed")["resume_token"];
  again.step();
  refused("mine", token); // the first token is already used
  CHECK(again.close_session() == "user_stop");
  refused("mine", next); // the session has ended
  CHECK(plain.close_session() == "user_stop");
  CHECK(core.all_free());
  CHECK(core.metric(R"(parley_resumes_total{result="refused"})") == "9");
}

TEST_CASE("who does not come back in time gives the slot and its place back") {
  stub_script script(1);
  auto settings = test_server::quick_settings();
  settings.limits.resume_seconds = 0.05;
  test_server core(settings);
  core.add_up(script);
  auto place = std::make_shared<int>(0);
  const std::weak_ptr<int> held = place;
  auto client = core.connect("audio", {}, {}, std::move(place));
  const auto created = client.init(asking);
  client.vanish();
  CHECK(core.all_free());
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 0; }));
  client.handle.reset();
  auto late = core.come_back(created["session_id"], created["resume_token"], "1");
  CHECK(late.link->next("error")["error"]["code"] == "resume_refused");
  CHECK(held.expired());
}

TEST_CASE("what is larger than what is kept cannot be sent again") {
  stub_script script;
  script.answer_units_with(saying(std::string(5000, 'x')));
  auto settings = test_server::quick_settings();
  settings.limits.resume_bytes = 4096;
  test_server core(settings);
  core.add_up(script);
  auto client = core.connect("audio");
  const auto created = client.init(asking);
  client.step();
  client.vanish();
  auto behind = core.come_back(created["session_id"], created["resume_token"], "1");
  CHECK(behind.link->next("error")["error"]["message"].get<std::string>().find("no longer kept") != std::string::npos);
  auto again = core.come_back(created["session_id"], created["resume_token"], "2");
  again.link->next("session.resumed");
  CHECK(again.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("a session without a client moves to another worker like any other") {
  stub_script first;
  stub_script second;
  test_server core;
  core.add_up(first);
  auto client = core.connect("audio");
  const auto created = client.init(asking);
  client.step();
  client.step();
  client.vanish();
  core.add_up(second);
  first.die();
  auto again = core.come_back(created["session_id"], created["resume_token"], "3");
  CHECK(again.link->next("session.resumed")["inputs"] == 2);
  again.send_text(append_frame()); // the first engine dies of this unit, unless it has died before
  CHECK(again.link->next("response.output.delta")["chunk_index"] == 2);
  CHECK(again.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("a core that closes waits for nobody who is away") {
  stub_script script;
  auto settings = test_server::quick_settings();
  settings.limits.drain_seconds = 20;
  test_server core(settings);
  core.add_up(script);
  auto client = core.connect("audio");
  client.init(asking);
  client.vanish();
  const auto began = std::chrono::steady_clock::now();
  core.core().drain();
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(15));
  CHECK(core.core().live_sessions() == 0);
}

TEST_CASE("a session that is over keeps nothing of what it sent") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto link = std::make_shared<frame_watcher>();
  auto client = core.connect("audio", link);
  client.init(asking);
  client.step();
  CHECK(client.close_session() == "user_stop");
  client.vanish();
  CHECK(core.all_free());
  CHECK(link->all_gone());
}
