#include "client/resumption.hpp"

#include <catch2/catch.hpp>

using parley::client::resumption;
using type = parley::client::server_event_type;

namespace {

parley::client::server_glance plain_event(type what, std::int64_t id = 0) {
  parley::client::server_glance event;
  event.type = what;
  event.event_id = id;
  return event;
}

parley::client::server_glance created(double seconds = 30) {
  auto event = plain_event(type::created, 1);
  event.session_id = "sess_1";
  event.resume_token = "resume_1";
  event.resume_seconds = seconds;
  return event;
}

parley::client::server_glance refusal() {
  auto event = plain_event(type::error);
  event.error_code = "resume_refused";
  return event;
}

resumption::frame append(int number) {
  return std::make_shared<const std::string>(std::to_string(number));
}

std::string texts(const std::vector<resumption::frame>& frames) {
  std::string all;
  for (const auto& frame : frames) all += *frame + " ";
  return all;
}

} // namespace

TEST_CASE("without a token a session ends with its connection") {
  resumption memory(1);
  memory.heard(plain_event(type::created));
  CHECK_FALSE(memory.possible());
  CHECK_FALSE(memory.next(0, 0));
}

TEST_CASE("the query has the newest token and the last event") {
  resumption memory(1);
  memory.heard(created());
  memory.heard(plain_event(type::listen, 7));
  CHECK(memory.query() == "session_id=sess_1&resume_token=resume_1&last_event_id=7");
  auto again = plain_event(type::resumed);
  again.resume_token = "resume_2";
  memory.heard(again);
  CHECK(memory.query() == "session_id=sess_1&resume_token=resume_2&last_event_id=7");
}

TEST_CASE("attempts come ever more slowly, until the server no longer keeps the session") {
  resumption memory(1);
  memory.heard(created(30));
  double now = 100;
  for (const double wait : {0.5, 1.0, 2.0, 4.0, 8.0}) {
    const auto next = memory.next(now, 0);
    REQUIRE(next);
    CHECK(next->wait == Approx(wait));
    now += next->wait;
  }
  CHECK(memory.next(now, 0)->wait == Approx(10));
  CHECK(memory.next(125, 0)->wait == Approx(5)); // what is left of the 30 s
  CHECK_FALSE(memory.next(130, 0));
}

TEST_CASE("chance doubles a wait at most") {
  resumption memory(1);
  memory.heard(created());
  CHECK(memory.next(0, 0.5)->wait == Approx(0.75));
}

TEST_CASE("a server that goes away says when to come back") {
  resumption memory(1);
  memory.heard(created());
  auto leaving = plain_event(type::go_away);
  leaving.retry_after_ms = 3000;
  memory.heard(leaving);
  CHECK(memory.next(0, 0)->wait == Approx(3));
}

TEST_CASE("the address that had the session is tried first, then the others in turn") {
  resumption memory(3, 1);
  memory.heard(created());
  CHECK(memory.next(0, 0)->address == 1);
  CHECK(memory.next(1, 0)->address == 2);
  CHECK(memory.next(2, 0)->address == 0);
  CHECK(memory.next(3, 0)->address == 1);
}

TEST_CASE("the session is over when every address has refused it") {
  resumption memory(2);
  memory.heard(created());
  CHECK(memory.next(0, 0)->address == 0);
  memory.heard(refusal());
  const auto other = memory.next(1, 0);
  REQUIRE(other);
  CHECK(other->address == 1);
  memory.heard(refusal());
  CHECK_FALSE(memory.next(2, 0));
}

TEST_CASE("a refusal of an earlier break does not count") {
  resumption memory(2);
  memory.heard(created());
  CHECK(memory.next(0, 0));
  memory.heard(refusal());
  CHECK(memory.next(1, 0));
  memory.heard(plain_event(type::resumed));
  auto again = created();
  memory.heard(again);
  CHECK(memory.missing().empty());
  CHECK(memory.next(2, 0)->address == 1);
  memory.heard(refusal());
  CHECK(memory.next(3, 0)->address == 0);
}

TEST_CASE("appends that the server lacks are sent again") {
  resumption memory(1);
  memory.heard(created());
  for (int number = 1; number <= 5; ++number) memory.sent(append(number));
  auto again = plain_event(type::resumed);
  again.resume_token = "resume_2";
  again.inputs = 3;
  memory.heard(again);
  CHECK(texts(memory.missing()) == "4 5 ");
}

TEST_CASE("a minute of answered appends is kept, because a server may have lost them") {
  resumption memory(1);
  memory.heard(created());
  for (int number = 1; number <= 200; ++number) {
    memory.sent(append(number));
    auto answer = plain_event(type::listen, number + 1);
    answer.input = number;
    memory.heard(answer);
  }
  auto again = plain_event(type::resumed);
  again.resume_token = "resume_2";
  again.inputs = 198;
  memory.heard(again);
  CHECK(texts(memory.missing()) == "199 200 ");
  again.inputs = 0; // no server loses so much
  memory.heard(again);
  CHECK(memory.missing().size() == 60);
}

TEST_CASE("a session that was closed does not come back") {
  resumption memory(1);
  memory.heard(created());
  auto closed = plain_event(type::closed);
  closed.reason = "timeout";
  SECTION("by the server") {
    memory.heard(closed);
    CHECK_FALSE(memory.next(0, 0));
  }
  SECTION("but one that another gateway has taken up does") {
    closed.reason = "taken_up_elsewhere";
    memory.heard(closed);
    CHECK(memory.next(0, 0));
  }
}
