#include "tests/protocol/session_driver.hpp"

#include <catch2/catch.hpp>

// docs/protocol.md 8, and the waits of 5, with a clock that the test moves.
namespace parley::protocol::test {

TEST_CASE("the total duration counts from the accepted connection, whatever it was spent on") {
  const auto [mode, limit] =
      GENERATE(table<std::string, std::chrono::seconds>({{"audio", 600s}, {"video", 300s}, {"chat", 1800s}}));
  session_limits limits;
  limits.chat_idle = 9000s;

  SECTION("all of it in the queue") {
    driver d({.mode = mode});
    d.start();
    CHECK(d.wait(limit - 1ms) == "");
    CHECK(d.wait(1ms) == "closed:timeout close:1000 cancel");
  }
  SECTION("queue, init and talk together") {
    driver d({.mode = mode, .limits = limits});
    d.now += 5s; // between the upgrade and the first event
    d.start();
    d.wait(limit - 100s);
    d.grant();
    d.wait(20s);
    d.frame(init_frame());
    d.wait(10s);
    d.opened();
    const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(d.now - time_point(1000h));
    CHECK(d.wait(limit - spent - 30s - 1ms) == "");
    CHECK(d.wait(1ms) == "go_away:timeout");
    CHECK(said_event<session_go_away>(d.last).time_left_ms == 30'000);
    CHECK(d.wait(29'999ms) == "");
    CHECK(d.wait(1ms) == "closed:timeout close:1000 close_engine");
    CHECK(d.now == time_point(1000h) + limit);
  }
}

TEST_CASE("go_away comes right after session.created when less is left") {
  driver d({.mode = "video"});
  d.start();
  d.wait(280s);
  CHECK(d.grant() == "queue_done");
  CHECK(d.frame(init_frame()) == "open");
  CHECK(d.wait(5s) == "");
  CHECK(d.opened() == "created go_away:timeout");
  CHECK(said_event<session_go_away>(d.last).time_left_ms == 15'000);
  CHECK(d.wait(15s) == "closed:timeout close:1000 close_engine");
}

TEST_CASE("a short limit warns 10 s before") {
  session_limits limits;
  limits.audio = 60s;
  driver d({.limits = limits});
  d.to_active();
  CHECK(d.wait(50s) == "go_away:timeout");
  CHECK(d.wait(10s) == "closed:timeout close:1000 close_engine");
}

TEST_CASE("the init wait is not restarted by anything the client does") {
  driver d;
  d.to_connected();
  d.wait(10s);
  CHECK(d.frame(R"({"type":"session.init"})") == "error:missing_field");
  d.wait(10s);
  CHECK(d.frame(init_frame()) == "open");
  CHECK(d.failed(failure(0, conversation::failure_kind::invalid)) == "error:invalid_payload");
  CHECK(d.wait(9'999ms) == "");
  CHECK(d.wait(1ms) == "closed:timeout close:1000 release");
}

TEST_CASE("opening takes as long as it takes; a return after the init wait ends it") {
  driver d;
  d.to_connected();
  d.frame(init_frame());
  CHECK(d.wait(40s) == "");
  CHECK(d.failed(failure(0)) == "error:inference_error");
  CHECK(d.wait(0s) == "closed:timeout close:1000 release");
}

TEST_CASE("a pause has no limit of its own in audio and video") {
  driver d;
  d.to_active();
  CHECK(d.wait(569s) == "");
  CHECK(d.append() == "unit:0");
}

TEST_CASE("a session without a worker waits for another one only so long") {
  driver d;
  d.to_active();
  CHECK(d.worker_lost() == "enqueue:head");
  CHECK(d.wait(20s) == "");
  CHECK(d.grant() == "restore");
  CHECK(d.worker_lost() == "enqueue:head"); // while the session was being restored
  CHECK(d.wait(9'999ms) == "");
  CHECK(d.wait(1ms) == "closed:backend_error close:1011 cancel");

  driver restored;
  restored.to_active();
  restored.worker_lost();
  restored.grant();
  CHECK(restored.restored() == "");
  CHECK(restored.wait(60s) == "");
  restored.worker_lost();
  CHECK(restored.wait(29s) == "");
}

TEST_CASE("with a failover time of 0 a lost worker ends its sessions") {
  session_limits limits;
  limits.failover = 0s;
  driver d({.limits = limits});
  d.to_active();
  CHECK(d.worker_lost() == "closed:backend_error close:1011");
}

TEST_CASE("a drain gives the running sessions their grace, once") {
  driver d;
  d.to_active();
  CHECK(d.drain() == "go_away:server_shutdown");
  CHECK(said_event<session_go_away>(d.last).time_left_ms == 30'000);
  CHECK(d.wait(10s) == "");
  CHECK(d.drain() == "");
  CHECK(d.append() == "unit:0");
  CHECK(d.wait(19'999ms) == "");
  CHECK(d.wait(1ms) == "closed:server_shutdown close:1001 close_engine");
}

TEST_CASE("the mode of the init moves the limit, still counted from the connection") {
  driver d({.mode = std::nullopt});
  d.start();
  d.wait(200s);
  CHECK(d.frame(init_frame(R"({"mode":"turn_based"})")) == "retype:chat");
  CHECK(d.frame(init_frame(R"({"mode":"full_duplex"})")) == "retype:video");
  CHECK(d.frame(init_frame(R"({"mode":"turn_based"})")) == "retype:chat");
  CHECK(d.wait(1599s) == "");
  CHECK(d.wait(1s) == "closed:timeout close:1000 cancel");
}

TEST_CASE("nothing is due once a session is over") {
  driver d;
  d.to_active();
  d.drain();
  CHECK(d.machine.next_deadline());
  d.frame(close_frame());
  CHECK_FALSE(d.machine.next_deadline());
  CHECK(d.wait(10'000s) == "");
}

} // namespace parley::protocol::test
