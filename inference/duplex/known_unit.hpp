#pragma once

#include "inference/duplex/unit_decoder.hpp"
#include "inference/unit.hpp"

#include <cstdint>
#include <vector>

namespace parley::inference::duplex {

/// What a unit with known choices (a replayed one) feeds to the model after its input, all at once.
struct known_unit {
  std::vector<token_id> fed;
  std::vector<std::int64_t> reply; ///< indices into `fed` of those whose hidden states belong to the reply
  bool ends_turn = false;          ///< whether it did before it was cut while being spoken
};

/// Takes `decoder` through a unit according to its choices; afterwards it is in the state that it was in then. Throws
/// std::runtime_error when the choices cannot belong to this unit.
known_unit walk(unit_decoder& decoder, const unit_choices& known);

} // namespace parley::inference::duplex
