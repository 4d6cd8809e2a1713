#include "actors/session/lease_state.hpp"

#include "base/assert.hpp"

#include <type_traits>
#include <utility>

namespace parley::actors {

namespace {

void check(lease_step step, const lease_state& in) {
  PARLEY_ASSERT(allowed(step, in.index()), "a step of a lease fits its state");
}

/// For states that have a slot.
worker_slot take_slot(lease_state& in) {
  return std::visit(
      [](auto& of) -> worker_slot {
        if constexpr (std::is_same_v<std::decay_t<decltype(of)>, lease::displaced>) {
          PARLEY_ASSERT(of.slot.has_value(), "there is a slot to take");
          return std::move(*of.slot);
        } else if constexpr (requires { of.slot; }) {
          return std::move(of.slot);
        } else {
          PARLEY_ASSERT(false, "there is a slot to take");
          return {};
        }
      },
      in);
}

} // namespace

const worker_slot* slot_of(const lease_state& in) {
  return std::visit(
      [](const auto& of) -> const worker_slot* {
        if constexpr (std::is_same_v<std::decay_t<decltype(of)>, lease::displaced>) {
          return of.slot ? &*of.slot : nullptr;
        } else if constexpr (requires { of.slot; }) {
          return &of.slot;
        } else {
          return nullptr;
        }
      },
      in);
}

conversation::session_id engine_of(const lease_state& in) {
  return std::visit(
      [](const auto& of) -> conversation::session_id {
        if constexpr (requires { of.engine; })
          return of.engine;
        else
          return 0;
      },
      in);
}

ticket_key ticket_of(const lease_state& in) {
  return std::visit(
      [](const auto& of) -> ticket_key {
        if constexpr (requires { of.ticket; })
          return of.ticket;
        else
          return 0;
      },
      in);
}

lease_state asked(lease_state in, ticket_key fresh) {
  check(lease_step::ask, in);
  if (auto* of = std::get_if<lease::displaced>(&in)) {
    if (of->slot) return lease::held{std::move(*of->slot)};
    if (of->ticket != 0) return lease::waiting{of->ticket};
  }
  PARLEY_ASSERT(fresh != 0, "a ticket has a number");
  return lease::waiting{fresh};
}

lease_state granted(const lease_state& in, worker_slot slot) {
  check(lease_step::grant, in);
  if (std::holds_alternative<lease::moving>(in)) return lease::displaced{0, std::move(slot)};
  return lease::held{std::move(slot)};
}

lease_state out_of_line(lease_state in) {
  check(lease_step::leave_line, in);
  if (auto* of = std::get_if<lease::moving>(&in)) return lease::open{std::move(of->slot), of->engine};
  return lease::none{};
}

lease_state being_placed(lease_state in) {
  check(lease_step::place, in);
  return lease::placing{take_slot(in)};
}

lease_state opened(lease_state in, conversation::session_id engine) {
  check(lease_step::open, in);
  PARLEY_ASSERT(engine != 0, "an engine session has a number");
  return lease::open{take_slot(in), engine};
}

lease_state being_replayed(lease_state in, conversation::session_id engine) {
  check(lease_step::replay, in);
  PARLEY_ASSERT(engine != 0, "an engine session has a number");
  return lease::replaying{take_slot(in), engine};
}

lease_state caught_up(lease_state in) {
  check(lease_step::caught_up, in);
  const auto engine = engine_of(in);
  return lease::open{take_slot(in), engine};
}

lease_state denied(const lease_state& in, ticket_key fresh) {
  check(lease_step::deny, in);
  PARLEY_ASSERT(fresh != 0, "a ticket has a number");
  return lease::reopening{fresh, std::holds_alternative<lease::replaying>(in)};
}

lease_state being_moved(lease_state in, ticket_key fresh) {
  check(lease_step::move, in);
  PARLEY_ASSERT(fresh != 0, "a ticket has a number");
  const auto engine = engine_of(in);
  return lease::moving{take_slot(in), engine, fresh};
}

lease_state being_closed(lease_state in) {
  check(lease_step::close, in);
  const auto engine = engine_of(in);
  return lease::closing{take_slot(in), engine};
}

lease_state engine_ended(lease_state in) {
  check(lease_step::engine_ended, in);
  return lease::held{take_slot(in)};
}

lease_state lost(lease_state in, ticket_key next) {
  check(lease_step::lose, in);
  if (const auto* of = std::get_if<lease::moving>(&in)) return lease::displaced{of->ticket};
  return lease::displaced{next};
}

lease_state given_up(const lease_state& in) {
  check(lease_step::give_up, in);
  return lease::displaced{};
}

lease_state released(const lease_state& in) {
  check(lease_step::release, in);
  return lease::none{};
}

} // namespace parley::actors
