#include "actors/queue/queue_manager.hpp"
#include "base/assert.hpp"
#include "tests/actors/test_server.hpp"

#include <caf/all.hpp>
#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <future>

// A broken invariant costs the session whose work broke it, and nothing else. Not for sanitized builds, which abort.

using namespace parley;
using namespace parley::tests;

namespace {

/// Suppresses the output of violations that a test plants.
class silent {
public:
  silent() {
    base::set_violation_handler([](const base::assertion_site&) noexcept {});
  }
  ~silent() { base::set_violation_handler(nullptr); }
  silent(const silent&) = delete;
  silent& operator=(const silent&) = delete;
};

/// Makes the session's handler break an invariant at the model's first answer.
class planted_link : public recording_link {
public:
  void send(std::shared_ptr<const std::string> frame) override {
    PARLEY_ASSERT(frame->find("response.output.delta") == std::string::npos, "planted");
    recording_link::send(std::move(frame));
  }
};

double violations_in(test_server& core) {
  std::promise<std::string> answer;
  core.core().metrics([&](std::string text) { answer.set_value(std::move(text)); });
  const auto text = answer.get_future().get();
  const std::string name = "\nparley_invariant_violations_total ";
  const auto at = text.find(name);
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size()));
}

} // namespace

TEST_CASE("an invariant that breaks in a session's handler ends that session, in words, and is counted") {
  const silent quiet;
  stub_script script(2);
  test_server core;
  core.add_up(script);
  const auto before = violations_in(core);
  CHECK(before == static_cast<double>(base::violation_count()));
  auto client = core.connect("audio", std::make_shared<planted_link>());
  auto neighbour = core.connect();
  client.init();
  neighbour.init();
  client.send_text(append_frame());
  CHECK(client.link->next("session.closed")["reason"] == "backend_error");
  CHECK(client.link->closed() == 1011);
  for (int i = 0; i < 3; ++i) CHECK(neighbour.step()["kind"] == "listen");
  CHECK(violations_in(core) == before + 1);
  auto next = core.connect(); // the slot is free again
  next.init();
  CHECK(next.close_session() == "user_stop");
  CHECK(neighbour.close_session() == "user_stop");
  CHECK(core.all_free());
}

namespace {

using namespace parley::actors;

/// A queue manager among actors that the test plays.
struct lonely_queue {
  lonely_queue() {
    queue = system.spawn<queue_manager>(queue_settings{}, waiting_limits{},
                                        queue_manager::surroundings{board, sessions, counted, last_key});
  }
  ~lonely_queue() { caf::anon_send_exit(queue, caf::exit_reason::user_shutdown); }

  worker_table board{[](const worker_view&) {}};
  session_registry sessions;
  meters counted;
  std::atomic<std::uint64_t> last_key{1000};
  caf::actor_system_config config;
  caf::actor_system system{config};
  queue_actor queue;
};

/// A session or a worker, played by the test for the queue manager.
class played {
public:
  explicit played(caf::actor_system& system) : self_(system) {}

  template<class Handle>
  Handle as() {
    return caf::actor_cast<Handle>(caf::actor(self_));
  }

  /// Waits for a message of the given type.
  template<class Message>
  Message next() {
    std::optional<Message> come;
    self_->receive([&](const Message& message) { come = message; }, caf::after(std::chrono::seconds(30)) >> [] {});
    REQUIRE(come);
    return *come;
  }

  bool has_mail() { return self_->has_next_message(); }

private:
  caf::scoped_actor self_;
};

slot_request wish(const session_actor& session, ticket_key ticket) {
  return {session, ticket, protocol::mode::audio, false, 0, false, {}, "", ""};
}

} // namespace

TEST_CASE("an invariant that breaks in the queue manager on behalf of one session ends that session alone") {
  const silent quiet;
  lonely_queue of;
  played worker(of.system), first(of.system), second(of.system), third(of.system);
  caf::anon_send(of.queue, worker_joins{worker.as<worker_actor>(), 1, "", "none"});
  inference::engine_info info;
  info.slots = 2;
  caf::anon_send(of.queue, slots_offered{1, info});
  caf::anon_send(of.queue, wish(first.as<session_actor>(), 7));
  CHECK(first.next<slot_granted>().ticket == 7);
  const auto before = base::violation_count();
  caf::anon_send(of.queue, wish(second.as<session_actor>(), 7)); // a violation: the ticket is already used
  second.next<session_fault>();
  CHECK(base::violation_count() == before + 1);
  // The first session keeps its slot, and others get theirs.
  caf::anon_send(of.queue, slot_accepted{7});
  caf::anon_send(of.queue, wish(third.as<session_actor>(), 8));
  CHECK(third.next<slot_granted>().ticket == 8);
  CHECK_FALSE(first.has_mail());
  caf::anon_send(of.queue, slot_freed{7});
  caf::anon_send(of.queue, wish(second.as<session_actor>(), 9));
  CHECK(second.next<slot_granted>().ticket == 9);
}

TEST_CASE("the loss of a worker is told to its sessions by the queue manager, the next slot with it") {
  lonely_queue of;
  played second_worker(of.system), first(of.system), second(of.system), third(of.system);
  inference::engine_info info;
  info.slots = 1;
  const auto join = [&](played& worker, worker_key key, int slots) {
    caf::anon_send(of.queue, worker_joins{worker.as<worker_actor>(), key, "", "none"});
    info.slots = slots;
    caf::anon_send(of.queue, slots_offered{key, info});
  };
  {
    played first_worker(of.system);
    join(first_worker, 1, 3);
    caf::anon_send(of.queue, wish(first.as<session_actor>(), 7));
    CHECK(first.next<slot_granted>().key == 1);
    caf::anon_send(of.queue, wish(second.as<session_actor>(), 8));
    CHECK(second.next<slot_granted>().key == 1);
    caf::anon_send(of.queue, wish(third.as<session_actor>(), 9));
    CHECK(third.next<slot_granted>().key == 1);
    join(second_worker, 2, 1);
    caf::anon_send(of.queue, slot_freed{9}); // just before the session ends
  }
  const auto news = first.next<slot_lost>();
  CHECK(news.ticket == 7);
  const auto again = first.next<slot_granted>();
  CHECK(again.ticket == news.next);
  CHECK(again.key == 2);
  const auto other = second.next<slot_lost>();
  CHECK(other.ticket == 8);
  CHECK(second.next<queue_update>().ticket == other.next);
  CHECK_FALSE(third.has_mail());
  caf::anon_send(of.queue, slot_freed{again.ticket});
  CHECK(second.next<slot_granted>().ticket == other.next);
}
