#pragma once

#include "inference/duplex/unit_decoder.hpp"
#include "inference/unit.hpp"

#include <cstdint>
#include <vector>

namespace parley::inference::duplex {

/// What a unit whose choices are known (a replayed one) feeds to the model behind its input, all at once.
struct known_unit {
  std::vector<token_id> fed;
  std::vector<std::int64_t> reply; ///< indices into `fed` of those whose hidden states belong to the reply
  bool ends_turn = false;          ///< it did before it was cut while it was spoken
};

/// Walks `decoder` through a unit as its choices say: afterwards it stands where it stood then.
/// Throws std::runtime_error when they can't be this unit's.
known_unit walk(unit_decoder& decoder, const unit_choices& known);

} // namespace parley::inference::duplex
