#pragma once

#include "inference/unit.hpp"
#include "protocol/session/engine_reports.hpp"
#include "protocol/session/session_effects.hpp"
#include "protocol/session/session_machine.hpp"

// Converts between the types of the wire (protocol/) and those of the engine (inference/). Samples and pictures are not
// copied, only their shared pointers. Pure; `session` is the engine session's id.
namespace parley::actors {

/// Returns `open_duplex`, or in chat `open_chat`.
inference::command to_engine(const protocol::open_engine& order, inference::session_id session);
inference::command to_engine(protocol::submit_unit&& order, inference::session_id session);
inference::command to_engine(const protocol::submit_turn& order, inference::session_id session);

protocol::engine_opened from_engine(const inference::opened& event);
protocol::step_report from_engine(inference::step_output&& event);
protocol::turn_report from_engine(inference::chat_delta&& event);
protocol::turn_done_report from_engine(inference::chat_done&& event);
protocol::engine_failure from_engine(inference::failed&& event);

/// Tells the machine.
protocol::effects hear(protocol::session_machine& machine, inference::event&& event, protocol::time_point now);

} // namespace parley::actors
