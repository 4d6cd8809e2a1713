#include "tests/protocol/session_driver.hpp"

#include <catch2/catch.hpp>

// A session that loses its worker, through the machine's interface.
namespace parley::protocol::test {

TEST_CASE("a lost worker is a pause") {
  session_limits limits;
  limits.failover_units = 5;
  driver d({.limits = limits});
  d.to_active();
  d.append();
  d.append();
  CHECK(d.worker_lost() == "enqueue:head");
  CHECK(d.queued(1) == "");
  for (int i = 0; i < 4; ++i) CHECK(d.append() == ""); // kept: now 5 are waiting
  CHECK(d.append() == "");                             // the sixth drops the oldest
  CHECK(d.grant() == "restore");
  CHECK(d.restored() == "unit:0"); // the same unit again
  CHECK(d.step(listen_report(0)) == "listen[0] unit:1");
  CHECK(delta(d).measured.dropped_chunks == 1);
  CHECK(d.append() == ""); // still catching up: 5 may wait, so none is dropped
  CHECK(d.step(listen_report(1)) == "listen[1] unit:2");
  CHECK(delta(d).measured.dropped_chunks == 1);
  d.step(listen_report(2));
  d.step(listen_report(3));
  d.append();
  d.append(); // caught up: now at most two may wait
  d.step(listen_report(4));
  CHECK(delta(d).measured.dropped_chunks == 3);
}

TEST_CASE("nothing is said twice after a lost worker") {
  driver d;
  d.to_active();
  d.append();
  CHECK(d.step(text_report(0, "once", false)) == "text[0](once)");
  d.worker_lost();
  d.grant();
  CHECK(d.restored() == "unit:0");
  CHECK(d.step(text_report(0, "once", false)) == "");
  CHECK(d.step(audio_report(0, 100, false)) == "audio(100)");
}

TEST_CASE("an interrupt during a failover cuts the repeated step") {
  driver d;
  d.to_active();
  d.append();
  d.worker_lost();
  CHECK(d.append(320, R"(,"force_listen":true)") == "");
  d.grant();
  CHECK(d.restored() == "unit:0 cut");
}

TEST_CASE("what was dropped while a worker said nothing is kept once it is known to be lost") {
  driver d;
  d.to_active();
  for (int i = 0; i < 7; ++i) d.append(); // one runs, two wait, four are dropped
  CHECK(d.worker_lost() == "enqueue:head");
  d.grant();
  CHECK(d.restored() == "unit:0");
  for (int i = 0; i < 7; ++i) {
    d.step(listen_report(i));
    CHECK(delta(d).measured.dropped_chunks == 0);
  }
}

} // namespace parley::protocol::test
