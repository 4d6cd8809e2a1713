#include "tests/actors/queue_fixture.hpp"

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

// docs/protocol.md 7 must hold for any events in any order.
namespace parley::actors {

using namespace test;

TEST_CASE("nobody waits longer than 3 s for a word, nobody hears two within 500 ms but of the first") {
  queue_fixture h;
  std::mt19937 random(5);
  h.offer(1, 3);
  std::map<ticket_key, admission_queue::time_point> heard;
  std::map<ticket_key, int> place;
  std::deque<ticket_key> holding;
  const auto hear = [&](const queue_events& said) {
    for (const queue_event& each : said) {
      if (const auto* queued = std::get_if<ticket_queued>(&each)) {
        heard[queued->ticket] = h.now;
      } else if (const auto* told = std::get_if<position_changed>(&each)) {
        CHECK(h.now - heard.at(told->ticket) >= 500ms);
        CHECK(h.now - heard.at(told->ticket) <= 3000ms);
        heard[told->ticket] = h.now;
      } else if (const auto* granted = std::get_if<ticket_granted>(&each)) {
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
  const double seconds = std::chrono::duration<double>(h.now - admission_queue::time_point(1000h)).count();
  CHECK(walks < 10 * seconds);
}

TEST_CASE("whatever happens, nobody is overtaken and no slot is lost") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    queue_fixture h({.capacity = 50});
    std::deque<ticket_key> line;            // the expected queue
    std::set<ticket_key> ahead;             // those who had a slot before: in order, ahead of all others
    std::map<ticket_key, worker_key> holds; // slots that are granted or in use
    std::map<worker_key, int> slots;
    ticket_key next = 1;
    worker_key next_worker = 1;
    const auto insert_at_head = [&](ticket_key ticket) {
      const auto behind =
          std::find_if(line.begin(), line.end(), [&](ticket_key each) { return !ahead.contains(each); });
      line.insert(behind, ticket);
      ahead.insert(ticket);
    };
    const auto hear = [&](const queue_events& said) {
      for (const queue_event& each : said) {
        if (const auto* granted = std::get_if<ticket_granted>(&each)) {
          if (!line.empty() && line.front() == granted->ticket) line.pop_front();
          REQUIRE(std::find(line.begin(), line.end(), granted->ticket) == line.end());
          REQUIRE(slots.contains(granted->worker));
          REQUIRE(holds.emplace(granted->ticket, granted->worker).second);
        } else if (const auto* queued = std::get_if<ticket_queued>(&each)) {
          const auto at = std::find(line.begin(), line.end(), queued->ticket);
          REQUIRE(at != line.end());
          REQUIRE(queued->place.position == at - line.begin() + 1);
          REQUIRE(queued->place.queue_length == static_cast<int>(line.size()));
        } else if (const auto* told = std::get_if<position_changed>(&each)) {
          REQUIRE(line.at(static_cast<std::size_t>(told->place.position) - 1) == told->ticket);
          REQUIRE(told->place.estimated_wait_s >= 0);
        } else if (const auto* refused = std::get_if<ticket_refused>(&each)) {
          std::erase(line, refused->ticket);
        }
      }
    };
    for (int i = 0; i < 400; ++i) {
      switch (random() % 9) {
      case 0:
      case 1:
      case 2: {
        const bool at_head = random() % 10 == 0;
        const ticket_key ticket = next++;
        if (at_head) {
          insert_at_head(ticket);
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
      case 8:
        if (!holds.empty()) {
          const auto it = std::next(holds.begin(), static_cast<long>(random() % holds.size()));
          queue_events said;
          const auto where = h.line.rebalance(it->first, random() % 3, h.now, said);
          REQUIRE(where);
          REQUIRE(slots.contains(*where));
          it->second = *where;
          hear(said);
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
          std::vector<admission_queue::successor> displaced;
          for (const auto& [ticket, worker] : holds)
            if (worker == down && random() % 4 != 0) displaced.push_back({ticket, 0, "t"});
          for (auto& each : displaced) each.ticket = next++;
          std::erase_if(holds, [&](const auto& each) { return each.second == down; });
          for (const auto& each : displaced) insert_at_head(each.ticket);
          hear(h.line.worker_down(down, h.now, displaced));
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
  queue_fixture h;
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
    const queue_events said = h.line.free(over, h.now);
    REQUIRE(said.size() == 1);
    const ticket_key served = std::get<ticket_granted>(said[0]).ticket;
    REQUIRE(served > latest);
    latest = served;
  }
  CHECK(latest <= 1004);
  CHECK(h.line.free_slots() == 0);
}

} // namespace parley::actors
