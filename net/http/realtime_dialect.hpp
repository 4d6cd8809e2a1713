#pragma once

#include "actors/gateway_api.hpp"
#include "config/settings.hpp"

#include <optional>
#include <string_view>

namespace parley::net {

/// Whether a path upgrades to a WebSocket with a session.
bool is_realtime_path(std::string_view path);

/// What an upgrade request asks for if it speaks a dialect of OpenAI's; nothing if it speaks Parley's own protocol
/// (docs/openai.md says which one it is). `subprotocols`: those offered; `beta`: the header OpenAI-Beta.
std::optional<actors::realtime_request> realtime_request_of(std::string_view path, std::string_view query,
                                                            std::string_view subprotocols, std::string_view beta,
                                                            config::openai_door door = config::openai_door::automatic);

/// Whether an upgrade request that is none of OpenAI's leaves open what the client speaks: its first event tells.
bool is_undecided(std::string_view path, std::string_view query,
                  config::openai_door door = config::openai_door::automatic);

} // namespace parley::net
