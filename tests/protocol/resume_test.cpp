#include "protocol/session/sent_events.hpp"
#include "tests/protocol/session_driver.hpp"

#include <catch2/catch.hpp>

#include <random>
#include <set>

// Sessions whose client loses its connection and comes back (docs/protocol.md 14).
namespace parley::protocol::test {

namespace {

constexpr const char* asking = R"({"resume":true})";

/// ACTIVE, with a client that may come back; returns its token.
std::string token_of(driver& d, std::string_view payload = asking) {
  d.to_connected();
  d.frame(init_frame(payload));
  d.opened();
  return said_event<session_created>(d.last).resume_token.value_or("");
}

std::vector<std::uint64_t> numbers(const effects& made) {
  std::vector<std::uint64_t> found;
  for (const effect& each : made)
    if (const auto* sent = std::get_if<send>(&each)) found.push_back(sent->event_id);
  return found;
}

} // namespace

TEST_CASE("who does not ask for it gets no token, no numbers, and ends with the connection") {
  const auto payload = GENERATE("{}", R"({"resume":false})", R"({"resume":null})");
  driver d;
  CHECK(token_of(d, payload).empty());
  CHECK_FALSE(d.machine.resumable());
  CHECK(numbers(d.all) == std::vector<std::uint64_t>{0, 0});
  CHECK(d.resume({"", 0}) == "refused:resume_refused");
  CHECK(d.gone() == "close_engine");
  CHECK(d.machine.closed_reason() == "client_closed");
}

TEST_CASE("where the setting is 0 nobody gets one") {
  session_limits limits;
  limits.resume = 0s;
  driver d({.limits = limits});
  CHECK(token_of(d).empty());
  CHECK(d.gone() == "close_engine");
}

TEST_CASE("resume has to be a boolean") {
  driver d;
  d.to_connected();
  CHECK(d.frame(init_frame(R"({"resume":"yes"})")) == "error:invalid_payload");
}

TEST_CASE("a session is taken up again where it was") {
  driver d;
  const auto token = token_of(d);
  CHECK(said_event<session_created>(d.last).resume_seconds == 30);
  d.append();
  CHECK(d.step(text_report(0, "hi", false)) == "text[0](hi)");
  CHECK(d.append() == "");
  CHECK(d.gone() == "");
  CHECK(d.machine.state() == session_state::active);
  CHECK(d.step(audio_report(0, 100, false)) == "audio(100) unit:1"); // the step continues meanwhile
  CHECK(d.wait(29'999ms) == "");
  CHECK(d.resume({token, 2}) == "resumed:2,1 again:2");
  CHECK(d.wait(30s) == "");
  CHECK(d.step(listen_report(1)) == "listen[1]");
  // Unnumbered (0): queue_done, which precedes the session, and session.resumed.
  CHECK(numbers(d.all) == std::vector<std::uint64_t>{0, 1, 2, 3, 0, 4});
}

TEST_CASE("who does not come back in time is gone") {
  driver d;
  const auto token = token_of(d);
  d.gone();
  CHECK(d.wait(30s) == "close_engine");
  CHECK(d.machine.closed_reason() == "client_closed");
  CHECK(d.resume({token, 1}) == "refused:resume_refused");
  CHECK(d.engine_closed() == "release");
}

TEST_CASE("a token is good once, and until the client has shown that it has the next one") {
  driver d;
  const auto first = token_of(d);
  CHECK(d.resume({first + "a", 1}) == "refused:resume_refused");
  CHECK(d.resume({first.substr(1), 1}) == "refused:resume_refused");
  CHECK(d.resume({"", 1}) == "refused:resume_refused");
  d.gone();
  CHECK(d.resume({first, 1}) == "resumed:0,0 again:1");
  const auto second = said_event<session_resumed>(d.last).resume_token;
  CHECK(second != first);
  d.gone(); // gone before it has read anything
  CHECK(d.resume({first, 1}) == "resumed:0,0 again:1");
  const auto third = said_event<session_resumed>(d.last).resume_token;
  CHECK(d.resume({second, 1}) == "refused:resume_refused"); // the client never received this one
  d.append();                                               // proves that it received the third
  d.gone();
  CHECK(d.resume({first, 1}) == "refused:resume_refused");
  CHECK(d.resume({third, 1}) == "resumed:1,0 again:1");
}

TEST_CASE("a connection that nobody knows to be dead is replaced") {
  driver d;
  const auto token = token_of(d);
  d.append();
  CHECK(d.resume({token, 1}) == "resumed:1,0 again:1");
  CHECK(d.step(listen_report(0)) == "listen[0]");
}

TEST_CASE("what cannot be sent again is no resumption") {
  driver d;
  const auto token = token_of(d);
  d.append();
  d.step(listen_report(0));
  d.gone();
  CHECK(d.resume({token, 3}) == "refused:resume_refused");    // never sent
  CHECK(d.resume({token, 0}, 2) == "refused:resume_refused"); // no longer kept
  CHECK(d.resume({token, 1}, 2) == "resumed:1,1 again:1");
}

TEST_CASE("clocks go on while the connection is away") {
  SECTION("the whole session's") {
    session_limits limits;
    limits.audio = 60s;
    limits.resume = 1000s;
    driver d({.limits = limits});
    token_of(d);
    d.gone();
    CHECK(d.wait(60s) == "go_away:timeout closed:timeout close:1000 close_engine");
  }
  SECTION("chat's idle one") {
    session_limits limits;
    limits.resume = 1000s;
    driver d({.mode = "chat", .limits = limits});
    token_of(d);
    d.wait(40s);
    d.gone();
    CHECK(d.wait(20s) == "closed:timeout close:1000 close_engine");
  }
}

TEST_CASE("a chat answers on, and says what was missed") {
  driver d({.mode = "chat"});
  const auto token = token_of(d);
  d.frame(chat_frame());
  CHECK(d.turn(said(1, "Hello ")) == "text(Hello )");
  d.gone();
  CHECK(d.turn(said(1, "there.")) == "text(there.)");
  CHECK(d.done(turn_over(1, "Hello there.")) == "done:turn_end(Hello there.)");
  CHECK(d.resume({token, 2}) == "resumed:1,2 again:2");
}

TEST_CASE("what the client could not send meanwhile is not too fast") {
  session_limits limits;
  limits.failover_units = 8;
  driver d({.limits = limits});
  const auto token = token_of(d);
  d.append();
  d.step(listen_report(0));
  d.gone();
  d.wait(6s);
  d.resume({token, 2});
  for (int i = 0; i < 6; ++i) d.append(); // one runs, five wait
  for (std::uint64_t unit = 1; unit < 7; ++unit) {
    d.step(listen_report(unit));
    CHECK(delta(d).measured.dropped_chunks == 0);
  }
  d.wait(6s);
  for (int i = 0; i < 5; ++i) d.append(); // it has caught up by now, so this is too fast
  d.step(listen_report(7));
  CHECK(delta(d).measured.dropped_chunks == 2);
}

TEST_CASE("a server that stops waits for nobody") {
  SECTION("who is away") {
    driver d;
    token_of(d);
    d.gone();
    CHECK(d.drain() == "closed:server_shutdown close:1001 close_engine");
  }
  SECTION("who goes now") {
    driver d;
    token_of(d);
    d.drain();
    CHECK(d.gone() == "close_engine");
  }
}

TEST_CASE("tokens differ, and look alike") {
  std::mt19937_64 bits(5);
  random_source random = [&] { return bits(); };
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const auto token = make_resume_token(random);
    CHECK(token.size() == 39);
    seen.insert(token);
  }
  CHECK(seen.size() == 1000);
}

TEST_CASE("the number of an event is read strictly") {
  CHECK(read_event_id(std::nullopt) == 0U);
  CHECK(read_event_id("18") == 18U);
  for (const char* wrong : {"", "x", "-1", "1.5", "1 ", "99999999999999999999999"}) CHECK_FALSE(read_event_id(wrong));
}

TEST_CASE("the last events are kept, as many as fit") {
  const auto text = [](char c, std::size_t size) { return std::make_shared<const std::string>(size, c); };
  const auto behind = [](const sent_events& of, std::uint64_t seen) {
    std::string all;
    of.after(seen, [&](const auto& frame) { all += frame->front(); });
    return all;
  };
  sent_events kept(10);
  CHECK(kept.oldest() == 1);
  CHECK(behind(kept, 0).empty());
  kept.keep(1, text('a', 4));
  kept.keep(2, text('b', 6));
  CHECK(kept.oldest() == 1);
  CHECK(behind(kept, 0) == "ab");
  CHECK(behind(kept, 1) == "b");
  CHECK(behind(kept, 2).empty());
  kept.keep(3, text('c', 1));
  CHECK(kept.oldest() == 2);
  CHECK(behind(kept, 1) == "bc");
  kept.keep(4, text('d', 11)); // too large on its own
  CHECK(kept.oldest() == 5);
  CHECK(kept.bytes() == 0);
  CHECK(behind(kept, 4).empty());
  kept.keep(5, text('e', 10));
  CHECK(behind(kept, 4) == "e");
}

TEST_CASE("a session that another process takes up stands in line at the head and waits for its client") {
  driver d;
  const auto token = token_of(d);
  d.append();
  CHECK(d.taken_up() == "enqueue:head");
  CHECK(d.resume({token, 1}).starts_with("resumed:1,0 again:1"));
  CHECK(d.grant() == "restore");
  CHECK(d.restored() == "unit:0");
  CHECK(d.step(listen_report(0)) == "listen[0]");
}

TEST_CASE("whom nobody comes back to after that ends, and so does who gets no worker") {
  driver d;
  token_of(d);
  SECTION("its client stays away") {
    d.taken_up();
    CHECK(d.wait(29s).empty());
    d.grant();
    d.restored();
    CHECK(d.wait(1s) == "close_engine");
  }
  SECTION("it had been without a worker for a while when its process died") {
    d.worker_lost();
    CHECK(d.wait(20s).empty());
    CHECK(d.taken_up() == "enqueue:head");
    d.resume({d.machine.token()->token(), 1});
    CHECK(d.wait(29s).empty());
    CHECK(d.wait(1s) == "closed:backend_error close:1011 cancel");
  }
}

TEST_CASE("after a take-over a client may know a few more events than the machine") {
  driver d;
  const auto token = token_of(d);
  CHECK(d.resume({token, 2}) == "refused:resume_refused");
  d.taken_up();
  CHECK(d.resume({token, 2 + max_lost_events}) == "refused:resume_refused");
  CHECK(d.resume({token, 3}).starts_with("resumed:0,0 again:1"));
  CHECK(d.resume({token, 4}) == "refused:resume_refused");
  CHECK(d.resume({token, 3}).starts_with("resumed:0,0 again:1")); // that connection broke too
}

TEST_CASE("before a planned end its client learns when to come back") {
  driver d;
  token_of(d);
  CHECK(d.handover() == "go_away:server_restart close:1012");
  const auto& away = said_event<session_go_away>(d.last);
  CHECK(away.retry_after_ms == 1000);
  CHECK(numbers(d.last) == std::vector<std::uint64_t>{2});
}

} // namespace parley::protocol::test
