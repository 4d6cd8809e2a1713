#pragma once

#include "actors/worker_load.hpp"
#include "inference/engine.hpp"
#include "inference/unit.hpp"

#include <string>
#include <string_view>

// Commands, events and the rest of an engine's words as bytes, for the way between two nodes. Samples and pictures are
// copied in one piece each. Pure. Both sides are of the same version, so nothing here is made to last.
namespace parley::actors {

std::string pack(const inference::command& order);
std::string pack(const inference::event& event);
std::string pack(const inference::engine_info& info);
std::string pack(const worker_load& load);

/// False if the bytes are none of `pack`'s; what was read into is unusable then.
[[nodiscard]] bool unpack(std::string_view bytes, inference::command& order);
[[nodiscard]] bool unpack(std::string_view bytes, inference::event& event);
[[nodiscard]] bool unpack(std::string_view bytes, inference::engine_info& info);
[[nodiscard]] bool unpack(std::string_view bytes, worker_load& load);

} // namespace parley::actors
