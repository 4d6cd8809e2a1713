#pragma once

#include "conversation/engine.hpp"

#include <cstddef>

namespace parley::actors {

/// How many values an enum has, from 0 on. Each enum that is read from bytes says so: any other number is refused there.
template<class Enum>
inline constexpr std::size_t enum_values = 0;

template<>
inline constexpr std::size_t enum_values<conversation::output_kind> = 3;
template<>
inline constexpr std::size_t enum_values<conversation::finish_reason> = 3;
template<>
inline constexpr std::size_t enum_values<conversation::failure_kind> = 3;
template<>
inline constexpr std::size_t enum_values<conversation::window_mode> = 3;
template<>
inline constexpr std::size_t enum_values<conversation::role> = 4;
template<>
inline constexpr std::size_t enum_values<conversation::cut_point> = 3;

} // namespace parley::actors
