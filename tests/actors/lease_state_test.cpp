#include "actors/session/lease_state.hpp"

#include "base/assert.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

// The states of a lease, one at a time, without actors.
namespace parley::actors {

namespace {

constexpr worker_key home = 7;

worker_slot slot(ticket_key ticket, worker_key key = home) {
  return {ticket, {}, key};
}

/// One of each state, in the order of the variant.
std::vector<lease_state> every_state() {
  return {lease::none{},
          lease::waiting{1},
          lease::held{slot(1)},
          lease::placing{slot(1)},
          lease::open{slot(1), 11},
          lease::moving{slot(1), 11, 2},
          lease::reopening{1, false},
          lease::replaying{slot(1), 11},
          lease::closing{slot(1), 11},
          lease::displaced{1, {}}};
}

using step_function = std::function<lease_state(lease_state)>;

std::vector<std::pair<lease_step, step_function>> every_step() {
  return {
      {lease_step::ask, [](lease_state in) { return asked(std::move(in), 9); }},
      {lease_step::grant, [](lease_state in) { return granted(std::move(in), slot(9)); }},
      {lease_step::leave_line, [](lease_state in) { return out_of_line(std::move(in)); }},
      {lease_step::place, [](lease_state in) { return being_placed(std::move(in)); }},
      {lease_step::open, [](lease_state in) { return opened(std::move(in), 12); }},
      {lease_step::replay, [](lease_state in) { return being_replayed(std::move(in), 12); }},
      {lease_step::caught_up, [](lease_state in) { return caught_up(std::move(in)); }},
      {lease_step::deny, [](lease_state in) { return denied(std::move(in), 9); }},
      {lease_step::move, [](lease_state in) { return being_moved(std::move(in), 9); }},
      {lease_step::close, [](lease_state in) { return being_closed(std::move(in)); }},
      {lease_step::engine_ended, [](lease_state in) { return engine_ended(std::move(in)); }},
      {lease_step::lose, [](lease_state in) { return lost(std::move(in), 9); }},
      {lease_step::give_up, [](lease_state in) { return given_up(std::move(in)); }},
      {lease_step::release, [](lease_state in) { return released(std::move(in)); }},
  };
}

template<class State>
const State& as(const lease_state& in) {
  REQUIRE(std::holds_alternative<State>(in));
  return std::get<State>(in);
}

} // namespace

TEST_CASE("a lease takes the steps that the table allows, and no other one") {
  const auto states = every_state();
  const auto steps = every_step();
  REQUIRE(states.size() == lease_states);
  REQUIRE(steps.size() == lease_steps);
  for (std::size_t at = 0; at < states.size(); ++at) {
    REQUIRE(states[at].index() == at);
    for (const auto& [step, take] : steps) {
      INFO("step " << static_cast<int>(step) << " in state " << at);
      if (allowed(step, at)) {
        CHECK_NOTHROW(take(states[at]));
        continue;
      }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // sanitized builds abort here
      CHECK_THROWS_AS(take(states[at]), base::invariant_violation);
#endif
    }
  }
}

TEST_CASE("a lease has a slot, an engine session and a ticket where its state says so") {
  const std::vector<ticket_key> slots{0, 0, 1, 1, 1, 1, 0, 1, 1, 0};
  const std::vector<conversation::session_id> engines{0, 0, 0, 0, 11, 11, 0, 11, 11, 0};
  const std::vector<ticket_key> tickets{0, 1, 0, 0, 0, 2, 1, 0, 0, 1};
  const auto states = every_state();
  for (std::size_t at = 0; at < states.size(); ++at) {
    INFO("state " << at);
    const auto* has = slot_of(states[at]);
    CHECK((has ? has->ticket : 0) == slots[at]);
    CHECK(engine_of(states[at]) == engines[at]);
    CHECK(ticket_of(states[at]) == tickets[at]);
  }
}

TEST_CASE("a conversation's way: in line, held, placed, open, closed, released") {
  lease_state at = asked({}, 5);
  CHECK(as<lease::waiting>(at).ticket == 5);
  at = being_placed(granted(std::move(at), slot(5)));
  at = granted(std::move(at), slot(5, 8)); // another worker has its prompt
  CHECK(as<lease::held>(at).slot.key == 8);
  at = opened(std::move(at), 21);
  CHECK(engine_of(at) == 21);
  at = engine_ended(being_closed(std::move(at)));
  CHECK(slot_of(at)->ticket == 5);
  CHECK(std::holds_alternative<lease::none>(released(std::move(at))));
}

TEST_CASE("a lost worker leaves a ticket, with which the session waits if it wants to") {
  const auto after = lost(lease::open{slot(5), 21}, 6);
  CHECK(slot_of(after) == nullptr);
  CHECK(engine_of(after) == 0);
  CHECK(as<lease::waiting>(asked(after, 0)).ticket == 6);
  CHECK(std::holds_alternative<lease::none>(released(after)));
  // The lost session has no ticket, because the queue manager is gone.
  CHECK(as<lease::waiting>(asked(lost(lease::open{slot(5), 21}, 0), 8)).ticket == 8);
}

TEST_CASE("a move ends with the other slot, with the line, or with the worker") {
  const auto moving = being_moved(lease::open{slot(5), 21}, 6);
  const auto there = granted(moving, slot(6, 8));
  CHECK(as<lease::displaced>(there).slot->key == 8);
  CHECK(as<lease::held>(asked(there, 0)).slot.ticket == 6);
  CHECK(as<lease::open>(out_of_line(moving)).engine == 21);
  CHECK(as<lease::waiting>(asked(lost(moving, 7), 0)).ticket == 6); // the older of the two tickets: its own
}

TEST_CASE("a replay that finds no room is repeated where there is some") {
  const auto denied_replay = denied(lease::replaying{slot(5), 21}, 6);
  CHECK(as<lease::reopening>(denied_replay).replay);
  CHECK_FALSE(as<lease::reopening>(denied(lease::open{slot(5), 21}, 6)).replay);
  const auto again = being_replayed(granted(denied_replay, slot(6)), 22);
  CHECK(engine_of(again) == 22);
  CHECK(as<lease::open>(caught_up(again)).engine == 22);
  CHECK(ticket_of(given_up(again)) == 0);
}

} // namespace parley::actors
