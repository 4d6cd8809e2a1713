#include "tests/protocol/session_driver.hpp"

#include <catch2/catch.hpp>

// How full the context is: docs/protocol.md 6.9, 6.10, through the machine's interface.
namespace parley::protocol::test {

TEST_CASE("a step that might not fit is not started") {
  // A unit without frames costs 2 marks + 10 rows + 20 tokens + 2 = 34.
  driver d;
  d.to_active(dialect::current, 8192 - 34 - 100);
  CHECK(d.append() == "unit:0");
  CHECK(d.step(listen_report(0, 8192 - 34)) == "listen[0] go_away:context_full");
  CHECK(d.append() == "unit:1");
  CHECK(d.step(listen_report(1, 8192 - 33)) == "listen[1]");
  CHECK(d.append() == "closed:context_full close:1000 close_engine");
}

TEST_CASE("the worst case counts pictures and the client's token limit") {
  driver d({.mode = "video"});
  d.to_connected();
  d.frame(init_frame(R"({"config":{"max_new_speak_tokens_per_chunk":100}})"));
  const std::string frames = R"(,"video_frames":[")" + std::string(tiny_jpeg_base64()) + R"("],"max_slice_nums":4)";
  // 114 without frames, and 5 pieces of 66 rows more for one frame in 4 slices.
  d.opened(8192 - 114 - 330 + 1);
  CHECK(d.append() == "unit:0");
  CHECK(d.step(listen_report(0, 8192 - 114 - 330)) == "listen[0] go_away:context_full");
  CHECK(d.append(unit_samples, frames) == "unit:1");
  CHECK(d.step(listen_report(1, 8192 - 114 - 330 + 1)) == "listen[1]");
  CHECK(d.append(unit_samples, frames) == "closed:context_full close:1000 close_engine");
}

TEST_CASE("what a unit costs is what the engine reported last") {
  const std::string frames = R"(,"video_frames":[")" + std::string(tiny_jpeg_base64()) + R"("],"max_slice_nums":4)";
  driver d({.mode = "video"});
  d.to_connected();
  // 32 without frames, and 18 more for one frame, which this model never slices.
  d.machine.learn({true, true, true}, 4096, {12, 18, false});
  d.frame(init_frame("{}"));
  d.opened(4096 - 32 - 18);
  CHECK(d.append(unit_samples, frames) == "unit:0");
  CHECK(d.step(listen_report(0, 4096 - 32 - 17)) == "listen[0] go_away:context_full");
  CHECK(d.append() == "unit:1");
  CHECK(d.step(listen_report(1, 4096 - 32 - 17)) == "listen[1]");
  CHECK(d.append(unit_samples, frames) == "closed:context_full close:1000 close_engine");
}

TEST_CASE("go_away tells how long the context lasts, once") {
  driver d;
  d.to_active(dialect::current, 20);
  d.append();
  CHECK(d.step(listen_report(0, 7373)) == "listen[0] go_away:context_full"); // 90 % of 8192 is 7372.8
  CHECK(said_event<session_go_away>(d.last).time_left_ms == (8192 - 7373) * 1000 / 7353);
  d.append();
  CHECK(d.step(listen_report(1, 7400)) == "listen[1]");
}

TEST_CASE("with a sliding window the context is never full") {
  session_limits limits;
  SECTION("as a setting of the server") {
    limits.window = window_mode::basic;
  }
  SECTION("as the client's wish") {}
  driver d({.limits = limits});
  d.to_connected();
  d.frame(init_frame(limits.window == window_mode::off ? R"({"config":{"sliding_window_mode":"context"}})" : "{}"));
  CHECK(opened_duplex(d).options.window != window_mode::off);
  d.opened(8190);
  CHECK(d.append() == "unit:0");
  CHECK(d.step(listen_report(0, 8192)) == "listen[0]");
  CHECK(d.append() == "unit:1");
}

TEST_CASE("the client's window can be forbidden") {
  session_limits limits;
  limits.allow_client_window = false;
  driver d({.limits = limits});
  d.to_connected();
  d.frame(init_frame(R"({"config":{"sliding_window_mode":"basic"}})"));
  CHECK(opened_duplex(d).options.window == window_mode::off);
  d.opened(8190);
  CHECK(d.append() == "closed:context_full close:1000 close_engine");
}

} // namespace parley::protocol::test
