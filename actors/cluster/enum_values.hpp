#pragma once

#include "inference/unit.hpp"

#include <cstddef>

namespace parley::actors {

/// How many values an enum has, from 0 on. Each enum that is read from bytes says so: any other number is refused there.
template<class Enum>
inline constexpr std::size_t enum_values = 0;

template<>
inline constexpr std::size_t enum_values<inference::output_kind> = 3;
template<>
inline constexpr std::size_t enum_values<inference::finish> = 3;
template<>
inline constexpr std::size_t enum_values<inference::failure> = 3;
template<>
inline constexpr std::size_t enum_values<inference::window_mode> = 3;
template<>
inline constexpr std::size_t enum_values<inference::role> = 4;
template<>
inline constexpr std::size_t enum_values<inference::cut_point> = 3;

} // namespace parley::actors
