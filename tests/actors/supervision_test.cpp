#include "actors/queue/queue_manager.hpp"
#include "actors/restarted.hpp"
#include "actors/transcription/transcription.hpp"
#include "base/answered.hpp"
#include "tests/actors/bare_actors.hpp"
#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

using namespace parley;
using namespace parley::tests;
using namespace parley::actors;

// What happens when an actor ends that a whole server needs, and who may say what of whom.

namespace {

struct alone {
  caf::actor_system_config config;
  caf::actor_system system{config};
};

/// A session or a worker that the test plays.
class part {
public:
  explicit part(caf::actor_system& system) : self_(system) {}

  template<class Handle>
  Handle as() {
    return caf::actor_cast<Handle>(caf::actor(self_));
  }

  template<class Message>
  void say(const queue_actor& to, Message what) {
    self_->send(to, std::move(what));
  }

  template<class Message>
  Message next() {
    std::optional<Message> come;
    self_->receive([&](const Message& message) { come = message; }, caf::after(std::chrono::seconds(20)) >> [] {});
    REQUIRE(come);
    return *come;
  }

private:
  caf::scoped_actor self_;
};

} // namespace

TEST_CASE("an actor that ends by itself starts again, and not after it was stopped") {
  alone of;
  std::atomic<int> started{0};
  restarted<caf::actor> kept(of.system, "it", [&] {
    ++started;
    return test::spawn(of.system, [](caf::event_based_actor* self) -> caf::behavior {
      self->set_exception_handler([](std::exception_ptr&) -> caf::error { return caf::sec::runtime_error; });
      return {[](test::go) { throw std::runtime_error("planted"); }};
    });
  });
  const auto first = kept.get();
  REQUIRE(first);
  caf::anon_send(first, test::go{});
  CHECK(eventually([&] { return started == 2 && kept.get() && kept.get() != first; }));
  kept.stop();
  CHECK_FALSE(kept.get());
  of.system.await_all_actors_done();
  CHECK(started == 2);
}

TEST_CASE("without its queue manager a server says that it is broken, and answers whoever asks") {
  std::promise<std::string> broken;
  stub_script script;
  server_core core(
      test_server::quick_settings(), [](const worker_view&) { throw std::runtime_error("planted"); },
      server_core::nodes::none, [&](std::string why) { broken.set_value(std::move(why)); });
  CHECK(core.fault().empty());
  core.add_worker("none", [&script](inference::engine::sink tell) { return script.make(std::move(tell)); });
  auto told = broken.get_future();
  REQUIRE(told.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  CHECK(told.get() == "the queue manager has ended");
  CHECK(core.fault() == "the queue manager has ended");
  CHECK_FALSE(core.ready().ready);
  std::promise<std::string> status;
  core.status([&](std::string json) { status.set_value(std::move(json)); });
  CHECK(nlohmann::json::parse(status.get_future().get())["workers"].size() == 1);
  std::promise<std::string> metrics;
  core.metrics([&](std::string text) { metrics.set_value(std::move(text)); });
  CHECK_FALSE(metrics.get_future().get().empty());
  std::promise<bool> drained;
  core.drain_worker(1, true, [&](bool known) { drained.set_value(known); });
  CHECK_FALSE(drained.get_future().get());
}

TEST_CASE("a question is answered once, also if it is lost") {
  int answers = 0;
  int last = 0;
  const auto count = [&](int what) {
    ++answers;
    last = what;
  };
  {
    const auto tell = base::answered<int>(count, 7);
    const auto copy = tell;
    tell(5);
    copy(6);
  }
  CHECK(answers == 1);
  CHECK(last == 5);
  { const auto lost = base::answered<int>(count, 7); }
  CHECK(answers == 2);
  CHECK(last == 7);
}

TEST_CASE("a worker speaks for itself alone") {
  worker_table board{[](const worker_view&) {}};
  session_registry sessions;
  meters counted;
  std::atomic<std::uint64_t> last_key{1000};
  alone of;
  const queue_actor queue = of.system.spawn<queue_manager>(
      queue_settings{}, waiting_limits{}, queue_manager::surroundings{board, sessions, counted, last_key});
  part worker(of.system), other(of.system), first(of.system), second(of.system);
  inference::engine_info info;
  info.slots = 1;
  caf::anon_send(queue, worker_joins{worker.as<worker_actor>(), 1, "", "none"});
  caf::anon_send(queue, worker_joins{other.as<worker_actor>(), 2, "", "none"});
  const auto wish = [](part& who, ticket_key ticket) {
    return slot_request{who.as<session_actor>(), ticket, protocol::mode::audio, false, 0, false, {}, "", ""};
  };
  other.say(queue, slots_offered{1, info}); // not its slots
  worker.say(queue, slots_offered{1, info});
  first.say(queue, wish(first, 7));
  CHECK(first.next<slot_granted>().key == 1);
  second.say(queue, wish(second, 8));
  CHECK(second.next<queue_update>().place.position == 1); // there was one slot
  other.say(queue, worker_leaves{1});
  other.say(queue, orphan_closed{1, 7});
  other.say(queue, orphan_closed{2, 7});
  other.say(queue, capacity_report{1, {{100, 90, 1, 2, 3, 4, 5}, 1.5, {}}});
  worker.say(queue, orphan_closed{1, 8}); // which has no slot
  std::promise<server_snapshot> asked;
  caf::anon_send(queue, snapshot_request{[&](const server_snapshot& now) { asked.set_value(now); }});
  // Messages of different senders may overtake one another: so each has to come before its sender's next.
  other.say(queue, slots_offered{2, info}); // its own, after all of the above
  CHECK(second.next<slot_granted>().key == 2);
  REQUIRE(asked.get_future().get().slots.size() == 2);
  worker.say(queue, orphan_closed{1, 7});
  part third(of.system);
  third.say(queue, wish(third, 9));
  CHECK(third.next<slot_granted>().key == 1);
  caf::anon_send_exit(queue, caf::exit_reason::user_shutdown);
}

TEST_CASE("an actor that cannot be started again at once is tried again") {
  alone of;
  std::atomic<int> tried{0};
  std::promise<void> third;
  restarted<caf::actor> kept(of.system, "it", [&] {
    const auto number = ++tried;
    if (number == 2) throw std::runtime_error("planted");
    if (number == 3) third.set_value();
    return test::spawn(of.system, [](caf::event_based_actor*) -> caf::behavior { return {[](caf::get_atom) {}}; });
  });
  caf::anon_send_exit(kept.get(), caf::exit_reason::kill);
  CHECK(third.get_future().wait_for(test::soon) == std::future_status::ready);
  kept.stop();
}

TEST_CASE("turns are answered when the actor that writes them down has ended") {
  alone of;
  meters counted;
  const auto no_sessions = [](auto&&...) -> std::unique_ptr<guest_handle> { throw std::runtime_error("planted"); };
  std::mutex of_told;
  std::set<std::uint64_t> failed;
  std::promise<void> all_failed;
  const auto asker = test::spawn(of.system, [&](caf::event_based_actor* self) -> caf::behavior {
    auto writer = std::make_shared<transcription_actor>();
    return {
        [=, &of, &counted](caf::get_atom, std::uint64_t number) {
          if (!*writer)
            *writer = of.system.spawn<transcription>(no_sessions, connection_info{}, counted, [](const auto&) {});
          protocol::transcript_request what;
          what.number = number;
          what.sound = protocol::compact(std::vector<float>(1600, 0.1f));
          write_down(self, *writer, std::move(what));
        },
        [&](const transcript_ready& answer) {
          if (answer.heard.result != protocol::transcript_result::failed) return;
          const std::lock_guard lock(of_told);
          if (failed.insert(answer.heard.number).second && failed.size() == 3) all_failed.set_value();
        },
    };
  });
  for (std::uint64_t number = 1; number <= 3; ++number) caf::anon_send(asker, caf::get_atom_v, number);
  CHECK(all_failed.get_future().wait_for(test::soon) == std::future_status::ready);
  caf::anon_send_exit(asker, caf::exit_reason::user_shutdown);
}
