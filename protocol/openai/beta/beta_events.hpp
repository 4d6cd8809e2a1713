#pragma once

#include <optional>
#include <string>
#include <string_view>

// The beta of OpenAI's Realtime API (`OpenAI-Beta: realtime=v1`, Azure's preview) as other names for the events of the
// GA API: flat sessions, older event types, fewer events.
namespace parley::protocol::openai::beta {

/// Whether this is a `session.update` as only clients of the beta send it.
bool is_beta_update(std::string_view frame);

/// A client's event for a GA machine. What needs no change, or cannot be read, is returned as it is. Keeps the
/// session's `temperature`, which the GA API no longer has, in `temperature`.
std::string from_beta(std::string_view frame, double& temperature);

/// An event of a GA machine for a client of the beta; none = the beta has no such event.
std::optional<std::string> to_beta(std::string frame, double temperature);

} // namespace parley::protocol::openai::beta
