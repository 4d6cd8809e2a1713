#pragma once

#include "actors/queue/admission_queue.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

// An admission queue with a clock that the test moves, and its events as text (docs/protocol.md 7).
namespace parley::actors::test {

using namespace std::chrono_literals;
using protocol::mode;

template<class... F>
struct overloaded : F... {
  using F::operator()...;
};

inline std::string word(const queue_event& said) {
  return std::visit(
      overloaded{
          [](const ticket_queued& w) {
            return std::to_string(w.ticket) + " queued " + std::to_string(w.place.position);
          },
          [](const position_changed& w) {
            return std::to_string(w.ticket) + " at " + std::to_string(w.place.position);
          },
          [](const ticket_granted& w) { return std::to_string(w.ticket) + " gets " + std::to_string(w.worker); },
          [](const ticket_recalled& w) { return std::to_string(w.ticket) + " recalled"; },
          [](const ticket_refused& w) {
            return std::to_string(w.ticket) + " " + std::string(protocol::traits(w.code).wire);
          },
      },
      said);
}

inline std::string words(const queue_events& all) {
  std::string text;
  for (const queue_event& each : all) text += (text.empty() ? "" : ", ") + word(each);
  return text;
}

struct queue_fixture {
  explicit queue_fixture(queue_settings settings = {}) : line(settings) {}

  std::string enqueue(ticket_key ticket, mode kind = mode::audio, bool at_head = false) {
    last = line.enqueue(ticket, "ticket_" + std::to_string(ticket), kind, at_head, now);
    return words(last);
  }
  std::string enqueue_aside(ticket_key ticket) {
    last = line.enqueue(ticket, "", mode::chat, false, now, {.background = true});
    return words(last);
  }
  std::string offer(worker_key worker, int slots) { return words(line.offer(worker, slots, now)); }
  std::string free(ticket_key ticket) { return words(line.free(ticket, now)); }

  std::string wait(std::chrono::milliseconds span) {
    const auto end = now + span;
    last.clear();
    for (auto due = line.next_deadline(); due && *due <= end; due = line.next_deadline()) {
      now = std::max(now, *due);
      for (queue_event& each : line.tick(now)) last.push_back(std::move(each));
    }
    now = end;
    return words(last);
  }

  double wait_s(ticket_key ticket) const {
    for (const queue_event& each : last) {
      if (const auto* queued = std::get_if<ticket_queued>(&each); queued && queued->ticket == ticket)
        return queued->place.estimated_wait_s;
      if (const auto* place = std::get_if<position_changed>(&each); place && place->ticket == ticket)
        return place->place.estimated_wait_s;
    }
    throw std::runtime_error("nothing was said to that ticket");
  }

  admission_queue line;
  admission_queue::time_point now{1000h};
  queue_events last;
};

} // namespace parley::actors::test
