#pragma once

#include "actors/capacity/worker_capacity.hpp"
#include "conversation/engine.hpp"
#include "inference/engine.hpp"

#include <optional>
#include <string>
#include <string_view>

// Commands, events and other values of an engine as bytes, for transport between two nodes. Samples and pictures are
// copied in one piece each. Pure. Both ends have the same version, so the format may change between versions.
namespace parley::actors {

std::string pack(const conversation::command& order);
std::string pack(const conversation::event& event);
std::string pack(const inference::engine_info& info);
std::string pack(const worker_capacity& load);

/// Returns false if `pack` did not make the bytes, or of something that makes no sense (unit_bounds); the target is then
/// unusable. Words that are only told to people are cut and cleaned instead.
[[nodiscard]] bool unpack(std::string_view bytes, conversation::command& order);
[[nodiscard]] bool unpack(std::string_view bytes, conversation::event& event);
[[nodiscard]] bool unpack(std::string_view bytes, inference::engine_info& info);
[[nodiscard]] bool unpack(std::string_view bytes, worker_capacity& load);

/// The failure of an answer that `unpack` refuses, for the session that waits for it; nothing if the bytes do not even say
/// which it is.
std::optional<conversation::event> failure_instead(std::string_view bytes);

} // namespace parley::actors
