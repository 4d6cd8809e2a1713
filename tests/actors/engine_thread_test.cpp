#include "actors/worker/engine_thread.hpp"

#include "tests/support/stub_engine.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <future>

using namespace parley;
using namespace parley::actors;
using parley::tests::stub_script;

namespace {

/// An engine thread that records everything it reports.
struct watched {
  std::promise<inference::engine_info> up;
  std::promise<std::string> down;
  std::promise<void> answered; ///< the first `closed`
  std::unique_ptr<engine_thread> thread;

  explicit watched(stub_script& script, std::size_t max_commands = 100,
                   std::chrono::milliseconds idle_after = std::chrono::minutes(1)) {
    thread = std::make_unique<engine_thread>(
        [&script](inference::engine::sink tell) { return script.make(std::move(tell)); },
        engine_thread::listener{
            [this](const inference::engine_info& info) { up.set_value(info); },
            [this](conversation::event&& event) {
              if (std::holds_alternative<conversation::closed>(event)) answered.set_value();
            },
            [this](std::string reason) { down.set_value(std::move(reason)); },
        },
        max_commands, idle_after);
  }
};

} // namespace

TEST_CASE("the engine is loaded, takes commands and ends without a word when it is stopped") {
  stub_script script(3);
  auto down = [&] {
    watched w(script);
    CHECK(w.up.get_future().get().slots == 3);
    CHECK(w.thread->post(conversation::open_chat{1, {}}));
    CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 1; }));
    CHECK(w.thread->post(conversation::close_session{1}));
    w.answered.get_future().wait();
    auto never = w.down.get_future();
    w.thread.reset();
    return never;
  }();
  CHECK_THROWS_AS(down.get(), std::future_error);
}

TEST_CASE("an engine without work is told so, as often as it likes at once, and then after a while again") {
  stub_script script;
  const auto begin = std::chrono::steady_clock::now();
  watched w(script, 100, std::chrono::milliseconds(200));
  CHECK(script.eventually([](const auto& s) { return s.idles() >= 3; }));
  CHECK(script.eventually([](const auto& s) { return s.idles() >= 6; }));
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(400));
  CHECK(w.thread->post(conversation::open_chat{1, {}}));
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 1; }));
}

TEST_CASE("an engine that cannot be loaded is reported once, with its reason") {
  stub_script script;
  script.fail_to_load("no such checkpoint");
  watched w(script);
  CHECK(w.down.get_future().get() == "no such checkpoint");
}

TEST_CASE("an engine that throws is reported with its reason, and what is posted later goes nowhere") {
  stub_script script;
  script.die();
  watched w(script);
  w.thread->post(conversation::cut{1});
  CHECK(w.down.get_future().get() == "the device is on fire");
  CHECK(w.thread->post(conversation::cut{1}));
}

TEST_CASE("a full handle refuses everything but closes") {
  stub_script script;
  script.hold_loading();
  watched w(script, 2);
  CHECK(w.thread->post(conversation::open_chat{1, {}}));
  CHECK(w.thread->post(conversation::cut{1}));
  CHECK_FALSE(w.thread->post(conversation::cut{1}));
  CHECK(w.thread->post(conversation::close_session{1}));
  script.allow_load();
  w.answered.get_future().wait();
  CHECK(script.eventually([](const auto& s) { return s.seen() == 3; }));
}

TEST_CASE("commands that wait are handed over together, before the next pass") {
  stub_script script;
  script.hold_loading();
  watched w(script);
  for (conversation::session_id id = 1; id <= 3; ++id) w.thread->post(conversation::open_chat{id, {}});
  w.thread->post(conversation::close_session{2});
  script.allow_load();
  w.answered.get_future().wait();
  CHECK(script.eventually([](const auto& s) { return s.most_open() == 3 && s.open_sessions() == 2; }));
}
