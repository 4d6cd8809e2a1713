#pragma once

#include "actors/bytes/compact_pcm.hpp"
#include "conversation/engine.hpp"

#include <cstddef>
#include <vector>

namespace parley::actors {

/// The input of a unit, in memory.
struct replay_input {
  compact_pcm sound;
  std::vector<conversation::image_file> frames;
  std::vector<conversation::text_message> context = {};

  std::size_t bytes() const; ///< Size in memory.
};

} // namespace parley::actors
