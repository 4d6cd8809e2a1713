#pragma once

#include "actors/worker/worker_capacity.hpp"
#include "inference/engine.hpp"
#include "inference/unit.hpp"

#include <string>
#include <string_view>

// Commands, events and other values of an engine as bytes, for transport between two nodes. Samples and pictures are
// copied in one piece each. Pure. Both ends have the same version, so the format may change between versions.
namespace parley::actors {

std::string pack(const inference::command& order);
std::string pack(const inference::event& event);
std::string pack(const inference::engine_info& info);
std::string pack(const worker_capacity& load);

/// Returns false if `pack` did not make the bytes; the target is then unusable.
[[nodiscard]] bool unpack(std::string_view bytes, inference::command& order);
[[nodiscard]] bool unpack(std::string_view bytes, inference::event& event);
[[nodiscard]] bool unpack(std::string_view bytes, inference::engine_info& info);
[[nodiscard]] bool unpack(std::string_view bytes, worker_capacity& load);

} // namespace parley::actors
