#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

// The table of docs/protocol.md section 5, cell by cell.
namespace parley::protocol {

/// The columns: QUEUED to CLOSED.
enum class session_state : std::uint8_t { queued, connected, initializing, active, closed };
inline constexpr std::size_t session_states = 5;

/// Its name in GET /status and GET /metrics.
constexpr std::string_view name_of(session_state state) {
  constexpr std::array<std::string_view, session_states> names{"queued", "connected", "initializing", "active",
                                                               "closed"};
  return names[static_cast<std::size_t>(state)];
}

/// The rows.
enum class session_event : std::uint8_t {
  worker_assigned,
  init,         ///< session.init or session.update that fits mode and dialect; its content is checked after the state
  init_foreign, ///< session.update in chat, or an init of the dialect that the connection does not speak
  append_own,
  append_foreign,
  tool_result, ///< input.tool_result
  close,
  other, ///< any other `type`
  engine_ready,
  engine_refusal, ///< the engine found a bad voice, prompt or picture, or something that exceeds the context
  engine_failure,
  worker_lost,
  work_lost_twice, ///< a second worker was lost with the same work
  refused,         ///< no slot for this session, says the queue or the failover clock
  init_wait_over,
  time_over,  ///< the mode's limit, or chat's idle limit
  grace_over, ///< the grace period of a drain has ended
  drain,
  gone,
  return_over, ///< a client that may resume has not done so in time
  fault,       ///< the server failed in its work for this session
};
inline constexpr std::size_t session_events = 21;

/// The contents of a cell; the session machine carries them out.
enum class action : std::uint8_t {
  ignore,
  impossible, ///< the caller must never cause it: asserted
  connect,
  give_back,
  hold_init,
  begin_init,
  say_not_ready,
  say_invalid_event,
  say_unknown_event,
  take_append,
  take_result,
  leave, ///< requested by the client
  begin_talk,
  refuse_init,
  fail_init,
  refuse_input,
  fail_input,
  queue_again,
  move_on, ///< to another worker, with the whole conversation
  restore,
  turn_away,
  give_up,
  lose_backend,
  time_out,
  shut_down,
  grace,
  part, ///< disconnected; the client may resume
  vanish,
};

/// The action for an event in a state.
constexpr action lookup(session_event event, session_state state) {
  using enum action;
  constexpr std::array<std::array<action, session_states>, session_events> table{{
      // queued           connected          initializing       active             closed
      {connect, impossible, impossible, restore, give_back},                                // worker_assigned
      {hold_init, begin_init, say_invalid_event, say_invalid_event, ignore},                // init
      {say_invalid_event, say_invalid_event, say_invalid_event, say_invalid_event, ignore}, // init_foreign
      {say_not_ready, say_not_ready, say_not_ready, take_append, ignore},                   // append_own
      {say_not_ready, say_not_ready, say_not_ready, say_invalid_event, ignore},             // append_foreign
      {say_not_ready, say_not_ready, say_not_ready, take_result, ignore},                   // tool_result
      {leave, leave, leave, leave, ignore},                                                 // close
      {say_unknown_event, say_unknown_event, say_unknown_event, say_unknown_event, ignore}, // other
      {impossible, impossible, begin_talk, impossible, ignore},                             // engine_ready
      {impossible, impossible, refuse_init, refuse_input, ignore},                          // engine_refusal
      {impossible, impossible, fail_init, fail_input, ignore},                              // engine_failure
      {impossible, queue_again, queue_again, move_on, ignore},                              // worker_lost
      {impossible, give_up, give_up, give_up, ignore},                                      // work_lost_twice
      {turn_away, impossible, impossible, lose_backend, ignore},                            // refused
      {impossible, time_out, impossible, impossible, ignore},                               // init_wait_over
      {time_out, time_out, time_out, time_out, ignore},                                     // time_over
      {impossible, impossible, impossible, shut_down, impossible},                          // grace_over
      {turn_away, shut_down, shut_down, grace, ignore},                                     // drain
      {vanish, vanish, vanish, part, ignore},                                               // gone
      {impossible, impossible, impossible, vanish, impossible},                             // return_over
      {lose_backend, lose_backend, lose_backend, lose_backend, ignore},                     // fault
  }};
  return table[static_cast<std::size_t>(event)][static_cast<std::size_t>(state)];
}

} // namespace parley::protocol
