#pragma once

#include "actors/kept_sound.hpp"
#include "inference/unit.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace parley::actors {

/// What came in with a unit, in memory.
struct kept_unit {
  kept_sound sound;
  std::vector<inference::image_file> frames;

  std::size_t bytes() const; ///< of memory
};

/// As one string, for the disk of this machine.
std::string pack(const kept_unit& unit);

/// `bytes` are of `pack`.
kept_unit unpack(std::string_view bytes);

} // namespace parley::actors
