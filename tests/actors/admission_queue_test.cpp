#include "tests/actors/queue_fixture.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <variant>
#include <vector>

// docs/protocol.md 7, with a clock that the test moves.
namespace parley::actors {

using namespace test;

TEST_CASE("an idle worker and an empty line: at once, without a word about places") {
  queue_fixture h;
  CHECK(h.offer(7, 2) == "");
  CHECK(h.enqueue(1) == "1 gets 7");
  CHECK(h.enqueue(2) == "2 gets 7");
  CHECK(h.line.free_slots() == 0);
  CHECK(h.enqueue(3) == "3 queued 1");
  CHECK(h.enqueue(4) == "4 queued 2");
  CHECK(h.free(1) == "3 gets 7");
  CHECK(h.free(3) == "4 gets 7");
  CHECK(h.line.waiting() == 0);
}

TEST_CASE("sessions spread over the workers") {
  queue_fixture h;
  h.offer(1, 2);
  h.offer(2, 3);
  CHECK(h.enqueue(1) == "1 gets 2");
  const std::string second = h.enqueue(2), third = h.enqueue(3);
  CHECK(second != third);
  const auto workers = h.line.workers();
  CHECK(workers[0].busy + workers[1].busy == 3);
}

TEST_CASE("a session goes where it loads the worker least, of what that one can do") {
  queue_fixture h;
  h.offer(1, 2);
  h.offer(2, 8);
  CHECK(h.enqueue(1) == "1 gets 2");
  CHECK(h.enqueue(2) == "2 gets 2");
  CHECK(h.enqueue(3) == "3 gets 2");
  CHECK(h.enqueue(4) == "4 gets 1");
  CHECK(h.enqueue(5) == "5 gets 2");
}

TEST_CASE("who wants to go elsewhere does not go where it is, and holds nobody up") {
  queue_fixture h;
  h.offer(1, 1);
  h.enqueue(1);
  const auto move = h.line.enqueue(2, "ticket_2", mode::audio, true, h.now, {.avoid = 1});
  CHECK(words(move) == "2 queued 1");
  CHECK(h.enqueue(3) == "3 queued 2");
  CHECK(h.free(1) == "3 gets 1");
  h.free(3);
  CHECK(h.enqueue(4) == "4 gets 1");
  CHECK(h.offer(2, 1) == "2 gets 2");
}

TEST_CASE("sessions that are under way outlast the others' patience without a worker") {
  queue_fixture h;
  h.offer(1, 1);
  h.enqueue(1);
  h.enqueue(2);
  h.line.worker_down(1, h.now);
  h.line.enqueue(3, "ticket_3", mode::audio, true, h.now, {.patient = true});
  h.wait(60s);
  CHECK(h.line.waiting() == 1);
  CHECK(h.offer(2, 1) == "3 gets 2");
}

TEST_CASE("no worker, no line, no room") {
  queue_fixture h;
  CHECK(h.enqueue(1) == "1 service_unavailable");
  queue_fixture none({.capacity = 0});
  none.offer(1, 1);
  CHECK(none.enqueue(1) == "1 gets 1");
  CHECK(none.enqueue(2) == "2 worker_busy");
  queue_fixture small({.capacity = 2});
  small.offer(1, 1);
  small.enqueue(1);
  CHECK(small.enqueue(2) == "2 queued 1");
  CHECK(small.enqueue(3) == "3 queued 2");
  CHECK(small.enqueue(4) == "4 queue_full");
  CHECK(small.enqueue(5, mode::audio, true) == "5 queued 1"); // it lost its worker, so the limit does not apply
}

TEST_CASE("whoever lost a worker is first in line") {
  queue_fixture h;
  h.offer(1, 1);
  h.enqueue(1);
  h.enqueue(2);
  h.enqueue(3);
  CHECK(words(h.line.worker_down(1, h.now)) == "");
  CHECK(h.enqueue(1, mode::audio, true) == "1 queued 1");
  CHECK(h.wait(500ms) == "2 at 2, 3 at 3");
  CHECK(h.offer(2, 2) == "1 gets 2, 2 gets 2");
}

TEST_CASE("those who lose their worker stand first in line, the oldest in front, or get what is free at once") {
  queue_fixture h;
  h.offer(1, 3);
  for (ticket_key ticket = 1; ticket <= 3; ++ticket) h.enqueue(ticket);
  h.line.accept(2, h.now);
  h.enqueue(4);
  CHECK(h.line.holders_of(1) == std::vector<ticket_key>{1, 2, 3});
  CHECK(h.line.worker_of(2) == std::optional<worker_key>(1));
  SECTION("nothing is free") {
    CHECK(words(h.line.worker_down(1, h.now, {{1, 11, "t"}, {2, 12, "t"}, {3, 13, "t"}})) ==
          "11 queued 1, 12 queued 2, 13 queued 3");
    CHECK_FALSE(h.line.worker_of(1));
    CHECK(h.line.waiting() == 4);
    CHECK(h.offer(2, 2) == "11 gets 2, 12 gets 2");
    CHECK(h.free(1) == ""); // the old ticket no longer counts
    CHECK(h.free(11) == "13 gets 2");
  }
  SECTION("there is room for two of them") {
    h.line.cancel(4, h.now);
    h.offer(2, 2);
    CHECK(words(h.line.worker_down(1, h.now, {{1, 11, "t"}, {2, 12, "t"}, {3, 13, "t"}})) ==
          "11 gets 2, 12 gets 2, 13 queued 1");
  }
  SECTION("one of them goes away with its worker") {
    CHECK(words(h.line.worker_down(1, h.now, {{2, 12, "t"}})) == "12 queued 1");
    CHECK(h.line.waiting() == 2);
  }
  SECTION("the server core closes") {
    CHECK(words(h.line.drain(h.now)) == "4 service_unavailable");
    CHECK(words(h.line.worker_down(1, h.now, {{1, 11, "t"}})) == "11 service_unavailable");
    CHECK(h.line.waiting() == 0);
  }
}

TEST_CASE("those who lost their worker are patient, unless they say otherwise, however late") {
  queue_fixture h;
  h.offer(1, 2);
  h.enqueue(1);
  h.enqueue(2);
  CHECK(words(h.line.worker_down(1, h.now, {{1, 11, "t"}, {2, 12, "t"}})) == "11 queued 1, 12 queued 2");
  CHECK(h.wait(60s).find("unavailable") == std::string::npos);
  h.line.make_impatient(11, h.now);
  h.line.make_impatient(99, h.now);
  CHECK(h.wait(9999ms).find("unavailable") == std::string::npos);
  CHECK(h.wait(1ms) == "11 service_unavailable");
  CHECK(h.line.waiting() == 1);
  CHECK(h.offer(2, 1) == "12 gets 2");
}

TEST_CASE("two thousand sessions come back at once: none is refused, as many as there are slots run at a time") {
  constexpr ticket_key returning = 2000;
  constexpr int slots = 8;
  queue_fixture h({.capacity = 10});
  h.offer(1, slots);
  for (ticket_key newcomer = 1; newcomer <= slots + 10; ++newcomer) h.enqueue(newcomer);
  CHECK(h.enqueue(99) == "99 queue_full");
  std::size_t granted = 0;
  std::vector<ticket_key> running;
  for (ticket_key each = 1; each <= slots; ++each) running.push_back(each);
  const auto take = [&](const queue_events& words) {
    for (const auto& word : words) {
      CHECK_FALSE(std::holds_alternative<ticket_refused>(word));
      if (const auto* grant = std::get_if<ticket_granted>(&word)) {
        running.push_back(grant->ticket);
        granted += grant->ticket > 100;
      }
    }
  };
  for (ticket_key each = 101; each <= 100 + returning; ++each)
    take(h.line.enqueue(each, "ticket_" + std::to_string(each), mode::audio, true, h.now, {.patient = true}));
  CHECK(granted == 0);
  CHECK(h.line.waiting() == returning + 10);
  while (!running.empty()) {
    CHECK(running.size() <= slots);
    const auto ended = running.front();
    running.erase(running.begin());
    take(h.line.free(ended, h.now));
  }
  CHECK(granted == returning);
  CHECK(h.line.waiting() == 0); // the newcomers were served too
}

TEST_CASE("whoever lost its worker goes where its prompt is at hand") {
  queue_fixture h;
  h.offer(1, 1);
  h.enqueue(1);
  queue_events said;
  h.line.rebalance(1, 77, h.now, said);
  h.offer(2, 4);
  h.offer(3, 4);
  h.line.prompts_at(3, {77});
  CHECK(words(h.line.worker_down(1, h.now, {{1, 11, "t"}})) == "11 gets 3");
}

TEST_CASE("a dead worker is never handed out") {
  queue_fixture h;
  h.offer(1, 2);
  h.enqueue(1);
  h.line.worker_down(1, h.now);
  CHECK(h.enqueue(2) == "2 service_unavailable");
  CHECK(h.free(1) == ""); // its slot went with the worker
  h.offer(2, 1);
  CHECK(h.enqueue(3) == "3 gets 2");
  CHECK(h.enqueue(4) == "4 queued 1");
  CHECK(h.line.free_slots() == 0);
}

TEST_CASE("a grant that nobody takes goes to the next in line") {
  queue_fixture h;
  h.offer(1, 1);
  h.enqueue(1);
  h.enqueue(2);
  h.enqueue(3);
  CHECK(words(h.line.cancel(1, h.now)) == ""); // too late: its slot was granted
  CHECK(h.free(1) == "2 gets 1");
  CHECK(h.free(1) == ""); // a slot can be freed only once
  CHECK(words(h.line.cancel(3, h.now)) == "");
  CHECK(h.free(2) == "");
  CHECK(h.line.free_slots() == 1);
}

TEST_CASE("fewer slots take nothing away, more serve the line") {
  queue_fixture h;
  h.offer(1, 2);
  for (ticket_key ticket = 1; ticket <= 5; ++ticket) h.enqueue(ticket);
  CHECK(h.offer(1, 1) == "");
  CHECK(h.free(1) == "");
  CHECK(h.free(2) == "3 gets 1");
  CHECK(h.offer(1, 3) == "4 gets 1, 5 gets 1");
}

TEST_CASE("places are told on a change, at most twice a second, and every 3 s") {
  queue_fixture h;
  h.offer(1, 1);
  for (ticket_key ticket = 1; ticket <= 4; ++ticket) h.enqueue(ticket);
  CHECK(h.wait(2999ms) == "");
  CHECK(h.wait(1ms) == "2 at 1, 3 at 2, 4 at 3");
  CHECK(h.wait(100ms) == "");
  CHECK(h.free(1) == "2 gets 1");
  CHECK(h.wait(399ms) == ""); // 499 ms after the last update
  CHECK(h.wait(1ms) == "3 at 1, 4 at 2");
  CHECK(h.wait(1000ms) == "");
  h.line.cancel(3, h.now);
  CHECK(h.wait(0ms) == "4 at 1");
  CHECK(h.wait(2750ms) == "");
  CHECK(h.wait(250ms) == "4 at 1");
}

TEST_CASE("the estimate goes over the busy slots") {
  queue_fixture h;
  h.offer(1, 2);
  h.enqueue(1, mode::chat);  // 15 s
  h.enqueue(2, mode::audio); // 120 s
  h.line.accept(1, h.now);
  h.line.accept(2, h.now);
  h.wait(5s);
  h.enqueue(3, mode::video);
  CHECK(h.wait_s(3) == Approx(10)); // the slot of the chat
  h.enqueue(4, mode::chat);
  CHECK(h.wait_s(4) == Approx(100)); // the same slot, after 90 s of video
  h.enqueue(5, mode::chat);
  CHECK(h.wait_s(5) == Approx(115)); // 100 + 15, or 115 in the slot of the audio session
  h.enqueue(6, mode::chat);
  CHECK(h.wait_s(6) == Approx(115));
}

TEST_CASE("who takes longer than expected is expected to take 15 s more") {
  queue_fixture h;
  h.offer(1, 1);
  h.enqueue(1, mode::chat);
  h.line.accept(1, h.now);
  h.wait(200s);
  h.enqueue(2, mode::chat);
  CHECK(h.wait_s(2) == Approx(15));
}

TEST_CASE("three measured conversations replace the configured length") {
  queue_fixture h;
  h.offer(1, 1);
  ticket_key ticket = 1;
  const auto talk = [&](std::chrono::seconds length) {
    h.enqueue(ticket, mode::chat);
    h.line.accept(ticket, h.now);
    h.now += length;
    h.free(ticket++);
  };
  const auto expected = [&] {
    h.enqueue(ticket, mode::chat);
    h.enqueue(ticket + 1, mode::chat);
    const double wait = h.wait_s(ticket + 1);
    h.line.cancel(ticket + 1, h.now);
    h.free(ticket); // never accepted, so its length does not count
    ticket += 2;
    return wait;
  };
  talk(40s);
  talk(50s);
  CHECK(expected() == Approx(15));
  talk(60s);
  CHECK(expected() == Approx(0.3 * 60 + 0.7 * (0.3 * 50 + 0.7 * 40)));
}

TEST_CASE("a session that turns out to be another kind is counted as that kind") {
  queue_fixture h;
  h.offer(1, 1);
  h.enqueue(1, mode::video);
  h.line.retype(1, mode::chat);
  h.enqueue(2, mode::video);
  CHECK(h.wait_s(2) == Approx(15));
  h.line.retype(2, mode::chat);
  h.enqueue(3, mode::video);
  CHECK(h.wait_s(3) == Approx(30));
}

TEST_CASE("without a worker the line waits 10 s") {
  queue_fixture h;
  h.offer(1, 1);
  h.enqueue(1);
  h.enqueue(2);
  h.enqueue(3);
  h.line.worker_down(1, h.now);
  CHECK(h.wait(9999ms).find("unavailable") == std::string::npos);
  SECTION("in vain") {
    CHECK(h.wait(1ms) == "2 service_unavailable, 3 service_unavailable");
    CHECK(h.line.waiting() == 0);
    CHECK_FALSE(h.line.next_deadline());
  }
  SECTION("for another one") {
    CHECK(h.offer(2, 1) == "2 gets 2");
    CHECK(h.wait(60s).find("unavailable") == std::string::npos);
    CHECK(h.line.waiting() == 1);
  }
}

TEST_CASE("a drain sends everybody away") {
  queue_fixture h;
  h.offer(1, 1);
  h.enqueue(1);
  h.enqueue(2);
  CHECK(words(h.line.drain(h.now)) == "2 service_unavailable");
  CHECK(h.enqueue(3) == "3 service_unavailable");
  CHECK(h.free(1) == "");
  CHECK(h.enqueue(4) == "4 service_unavailable");
}

} // namespace parley::actors
