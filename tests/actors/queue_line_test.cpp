#include "actors/queue_line.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

// PROTOCOL.md 7, with a clock that the test moves.
namespace parley::actors {

namespace {

using namespace std::chrono_literals;
using protocol::mode;

template<class... F>
struct overloaded : F... {
  using F::operator()...;
};

std::string word(const queue_word& said) {
  return std::visit(
      overloaded{
          [](const told_queued& w) { return std::to_string(w.ticket) + " queued " + std::to_string(w.place.position); },
          [](const told_place& w) { return std::to_string(w.ticket) + " at " + std::to_string(w.place.position); },
          [](const told_granted& w) { return std::to_string(w.ticket) + " gets " + std::to_string(w.worker); },
          [](const told_refused& w) {
            return std::to_string(w.ticket) + " " + std::string(protocol::traits(w.code).wire);
          },
      },
      said);
}

std::string words(const queue_words& all) {
  std::string text;
  for (const queue_word& each : all) text += (text.empty() ? "" : ", ") + word(each);
  return text;
}

struct house {
  explicit house(queue_settings settings = {}) : line(settings) {}

  std::string enqueue(ticket_key ticket, mode kind = mode::audio, bool at_head = false) {
    last = line.enqueue(ticket, "ticket_" + std::to_string(ticket), kind, at_head, now);
    return words(last);
  }
  std::string offer(worker_key worker, int slots) { return words(line.offer(worker, slots, now)); }
  std::string free(ticket_key ticket) { return words(line.free(ticket, now)); }

  std::string wait(std::chrono::milliseconds span) {
    const auto end = now + span;
    last.clear();
    for (auto due = line.next_deadline(); due && *due <= end; due = line.next_deadline()) {
      now = std::max(now, *due);
      for (queue_word& each : line.tick(now)) last.push_back(std::move(each));
    }
    now = end;
    return words(last);
  }

  double wait_s(ticket_key ticket) const {
    for (const queue_word& each : last) {
      if (const auto* queued = std::get_if<told_queued>(&each); queued && queued->ticket == ticket)
        return queued->place.estimated_wait_s;
      if (const auto* place = std::get_if<told_place>(&each); place && place->ticket == ticket)
        return place->place.estimated_wait_s;
    }
    throw std::runtime_error("nothing was said to that ticket");
  }

  queue_line line;
  queue_line::time_point now{1000h};
  queue_words last;
};

} // namespace

TEST_CASE("an idle worker and an empty line: at once, without a word about places") {
  house h;
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
  house h;
  h.offer(1, 2);
  h.offer(2, 3);
  CHECK(h.enqueue(1) == "1 gets 2");
  const std::string second = h.enqueue(2), third = h.enqueue(3);
  CHECK(second != third);
  const auto workers = h.line.workers();
  CHECK(workers[0].busy + workers[1].busy == 3);
}

TEST_CASE("no worker, no line, no room") {
  house h;
  CHECK(h.enqueue(1) == "1 service_unavailable");
  house none({.capacity = 0});
  none.offer(1, 1);
  CHECK(none.enqueue(1) == "1 gets 1");
  CHECK(none.enqueue(2) == "2 worker_busy");
  house small({.capacity = 2});
  small.offer(1, 1);
  small.enqueue(1);
  CHECK(small.enqueue(2) == "2 queued 1");
  CHECK(small.enqueue(3) == "3 queued 2");
  CHECK(small.enqueue(4) == "4 queue_full");
  CHECK(small.enqueue(5, mode::audio, true) == "5 queued 1"); // lost its worker: no capacity holds it off
}

TEST_CASE("whoever lost a worker is first in line") {
  house h;
  h.offer(1, 1);
  h.enqueue(1);
  h.enqueue(2);
  h.enqueue(3);
  CHECK(words(h.line.worker_down(1, h.now)) == "");
  CHECK(h.enqueue(1, mode::audio, true) == "1 queued 1");
  CHECK(h.wait(500ms) == "2 at 2, 3 at 3");
  CHECK(h.offer(2, 2) == "1 gets 2, 2 gets 2");
}

TEST_CASE("a dead worker is never handed out") {
  house h;
  h.offer(1, 2);
  h.enqueue(1);
  h.line.worker_down(1, h.now);
  CHECK(h.enqueue(2) == "2 service_unavailable");
  CHECK(h.free(1) == ""); // its slot is gone with it
  h.offer(2, 1);
  CHECK(h.enqueue(3) == "3 gets 2");
  CHECK(h.enqueue(4) == "4 queued 1");
  CHECK(h.line.free_slots() == 0);
}

TEST_CASE("a grant that nobody takes goes to the next in line") {
  house h;
  h.offer(1, 1);
  h.enqueue(1);
  h.enqueue(2);
  h.enqueue(3);
  CHECK(words(h.line.cancel(1, h.now)) == ""); // too late: it was granted
  CHECK(h.free(1) == "2 gets 1");
  CHECK(h.free(1) == ""); // once is once
  CHECK(words(h.line.cancel(3, h.now)) == "");
  CHECK(h.free(2) == "");
  CHECK(h.line.free_slots() == 1);
}

TEST_CASE("fewer slots take nothing away, more serve the line") {
  house h;
  h.offer(1, 2);
  for (ticket_key ticket = 1; ticket <= 5; ++ticket) h.enqueue(ticket);
  CHECK(h.offer(1, 1) == "");
  CHECK(h.free(1) == "");
  CHECK(h.free(2) == "3 gets 1");
  CHECK(h.offer(1, 3) == "4 gets 1, 5 gets 1");
}

TEST_CASE("places are told on a change, at most twice a second, and every 3 s") {
  house h;
  h.offer(1, 1);
  for (ticket_key ticket = 1; ticket <= 4; ++ticket) h.enqueue(ticket);
  CHECK(h.wait(2999ms) == "");
  CHECK(h.wait(1ms) == "2 at 1, 3 at 2, 4 at 3");
  CHECK(h.wait(100ms) == "");
  CHECK(h.free(1) == "2 gets 1");
  CHECK(h.wait(399ms) == ""); // 499 ms after the last word
  CHECK(h.wait(1ms) == "3 at 1, 4 at 2");
  CHECK(h.wait(1000ms) == "");
  h.line.cancel(3, h.now);
  CHECK(h.wait(0ms) == "4 at 1");
  CHECK(h.wait(2750ms) == "");
  CHECK(h.wait(250ms) == "4 at 1");
}

TEST_CASE("nobody waits longer than 3 s for a word, nobody hears two within 500 ms but of the first") {
  house h;
  std::mt19937 random(5);
  h.offer(1, 3);
  std::map<ticket_key, queue_line::time_point> heard;
  std::map<ticket_key, int> place;
  std::deque<ticket_key> holding;
  const auto hear = [&](const queue_words& said) {
    for (const queue_word& each : said) {
      if (const auto* queued = std::get_if<told_queued>(&each)) {
        heard[queued->ticket] = h.now;
      } else if (const auto* told = std::get_if<told_place>(&each)) {
        CHECK(h.now - heard.at(told->ticket) >= 500ms);
        CHECK(h.now - heard.at(told->ticket) <= 3000ms);
        heard[told->ticket] = h.now;
      } else if (const auto* granted = std::get_if<told_granted>(&each)) {
        heard.erase(granted->ticket);
        holding.push_back(granted->ticket);
      }
    }
  };
  ticket_key next = 1;
  std::size_t walks = 0;
  for (int i = 0; i < 3000; ++i) {
    if (random() % 3 == 0 && h.line.waiting() < 60) hear(h.line.enqueue(next++, "t", mode::audio, false, h.now));
    if (random() % 4 == 0 && !holding.empty()) {
      const ticket_key over = holding.front();
      holding.pop_front();
      hear(h.line.free(over, h.now));
    }
    if (random() % 8 == 0 && !heard.empty()) {
      const ticket_key away = std::next(heard.begin(), static_cast<long>(random() % heard.size()))->first;
      h.line.cancel(away, h.now);
      heard.erase(away);
    }
    const auto end = h.now + std::chrono::milliseconds(random() % 100);
    for (auto due = h.line.next_deadline(); due && *due <= end; due = h.line.next_deadline()) {
      h.now = std::max(h.now, *due);
      hear(h.line.tick(h.now));
      ++walks;
    }
    h.now = end;
  }
  const double seconds = std::chrono::duration<double>(h.now - queue_line::time_point(1000h)).count();
  CHECK(walks < 10 * seconds);
}

TEST_CASE("the estimate goes over the busy slots") {
  house h;
  h.offer(1, 2);
  h.enqueue(1, mode::chat);  // 15 s
  h.enqueue(2, mode::audio); // 120 s
  h.line.accept(1, h.now);
  h.line.accept(2, h.now);
  h.wait(5s);
  h.enqueue(3, mode::video);
  CHECK(h.wait_s(3) == Approx(10)); // the chat's slot
  h.enqueue(4, mode::chat);
  CHECK(h.wait_s(4) == Approx(100)); // that slot again, after 90 s of video
  h.enqueue(5, mode::chat);
  CHECK(h.wait_s(5) == Approx(115)); // 100 + 15, or the audio's 115: the same
  h.enqueue(6, mode::chat);
  CHECK(h.wait_s(6) == Approx(115));
}

TEST_CASE("who takes longer than expected is expected to take 15 s more") {
  house h;
  h.offer(1, 1);
  h.enqueue(1, mode::chat);
  h.line.accept(1, h.now);
  h.wait(200s);
  h.enqueue(2, mode::chat);
  CHECK(h.wait_s(2) == Approx(15));
}

TEST_CASE("three measured conversations replace the configured length") {
  house h;
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
    h.free(ticket); // never accepted: it measures nothing
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
  house h;
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
  house h;
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
  house h;
  h.offer(1, 1);
  h.enqueue(1);
  h.enqueue(2);
  CHECK(words(h.line.drain(h.now)) == "2 service_unavailable");
  CHECK(h.enqueue(3) == "3 service_unavailable");
  CHECK(h.free(1) == "");
  CHECK(h.enqueue(4) == "4 service_unavailable");
}

TEST_CASE("whatever happens, nobody is overtaken and no slot is lost") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    house h({.capacity = 50});
    std::deque<ticket_key> line;            // as it should be
    std::map<ticket_key, worker_key> holds; // granted or taken
    std::map<worker_key, int> slots;
    ticket_key next = 1;
    worker_key next_worker = 1;
    const auto hear = [&](const queue_words& said) {
      for (const queue_word& each : said) {
        if (const auto* granted = std::get_if<told_granted>(&each)) {
          if (!line.empty() && line.front() == granted->ticket) line.pop_front();
          REQUIRE(std::find(line.begin(), line.end(), granted->ticket) == line.end());
          REQUIRE(slots.contains(granted->worker));
          REQUIRE(holds.emplace(granted->ticket, granted->worker).second);
        } else if (const auto* queued = std::get_if<told_queued>(&each)) {
          const auto at = std::find(line.begin(), line.end(), queued->ticket);
          REQUIRE(at != line.end());
          REQUIRE(queued->place.position == at - line.begin() + 1);
          REQUIRE(queued->place.queue_length == static_cast<int>(line.size()));
        } else if (const auto* told = std::get_if<told_place>(&each)) {
          REQUIRE(line.at(static_cast<std::size_t>(told->place.position) - 1) == told->ticket);
          REQUIRE(told->place.estimated_wait_s >= 0);
        } else if (const auto* refused = std::get_if<told_refused>(&each)) {
          std::erase(line, refused->ticket);
        }
      }
    };
    for (int i = 0; i < 400; ++i) {
      switch (random() % 8) {
      case 0:
      case 1:
      case 2: {
        const bool at_head = random() % 10 == 0;
        const ticket_key ticket = next++;
        if (at_head) {
          line.push_front(ticket);
        } else {
          line.push_back(ticket);
        }
        hear(h.line.enqueue(ticket, "t", static_cast<mode>(random() % 3), at_head, h.now));
        break;
      }
      case 3:
        if (!line.empty()) {
          const ticket_key away = line[random() % line.size()];
          std::erase(line, away);
          hear(h.line.cancel(away, h.now));
        }
        break;
      case 4:
        if (!holds.empty()) {
          const auto it = std::next(holds.begin(), static_cast<long>(random() % holds.size()));
          const ticket_key over = it->first;
          if (random() % 2) h.line.accept(over, h.now);
          holds.erase(it);
          hear(h.line.free(over, h.now));
        }
        break;
      case 5:
        if (slots.size() < 4) {
          const worker_key worker = next_worker++;
          slots[worker] = static_cast<int>(random() % 4);
          hear(h.line.offer(worker, slots[worker], h.now));
        }
        break;
      case 6:
        if (!slots.empty() && random() % 4 == 0) {
          const worker_key down = std::next(slots.begin(), static_cast<long>(random() % slots.size()))->first;
          slots.erase(down);
          std::erase_if(holds, [&](const auto& each) { return each.second == down; });
          hear(h.line.worker_down(down, h.now));
        }
        break;
      default: h.now += std::chrono::milliseconds(random() % 2000); hear(h.line.tick(h.now));
      }
      REQUIRE(h.line.waiting() == line.size());
      std::map<worker_key, int> busy;
      for (const auto& [ticket, worker] : holds) ++busy[worker];
      int free = 0;
      for (const auto& view : h.line.workers()) {
        REQUIRE(view.busy == busy[view.worker]);
        REQUIRE(view.busy <= slots.at(view.worker));
        free += view.slots - view.busy;
      }
      REQUIRE(h.line.free_slots() == free);
      REQUIRE((line.empty() || free == 0));
    }
  }
}

TEST_CASE("a thousand waiters are served in order and quickly") {
  house h;
  h.offer(1, 4);
  for (ticket_key ticket = 1; ticket <= 1004; ++ticket) h.enqueue(ticket);
  CHECK(h.line.waiting() == 1000);
  CHECK(h.enqueue(5000) == "5000 queue_full");
  std::mt19937 random(1);
  std::set<ticket_key> away;
  while (away.size() < 500) away.insert(5 + random() % 1000);
  for (const ticket_key ticket : away) h.line.cancel(ticket, h.now);
  ticket_key latest = 4;
  for (ticket_key over = 1; h.line.waiting() > 0; ++over) {
    if (away.contains(over)) continue;
    const queue_words said = h.line.free(over, h.now);
    REQUIRE(said.size() == 1);
    const ticket_key served = std::get<told_granted>(said[0]).ticket;
    REQUIRE(served > latest);
    latest = served;
  }
  CHECK(latest <= 1004);
  CHECK(h.line.free_slots() == 0);
}

} // namespace parley::actors
