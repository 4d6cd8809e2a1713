#pragma once

#include "actors/session/compact_pcm.hpp"
#include "conversation/engine.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace parley::actors {

/// The input of a unit, in memory.
struct journal_input {
  compact_pcm sound;
  std::vector<conversation::image_file> frames;
  std::vector<conversation::text_message> context = {};

  std::size_t bytes() const; ///< Size in memory.
};

/// Packs it into one string, for this machine's disk.
std::string pack(const journal_input& unit);

/// `bytes` must come from `pack`.
journal_input unpack(std::string_view bytes);

} // namespace parley::actors
