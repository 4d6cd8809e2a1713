#pragma once

#include "actors/queue_line.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

// A queue line with a clock that the test moves, and its words as text (PROTOCOL.md 7).
namespace parley::actors::test {

using namespace std::chrono_literals;
using protocol::mode;

template<class... F>
struct overloaded : F... {
  using F::operator()...;
};

inline std::string word(const queue_word& said) {
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

inline std::string words(const queue_words& all) {
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

} // namespace parley::actors::test
