#pragma once

#include "inference/decoding/unit_decoder.hpp"
#include "inference/vocabulary.hpp"

#include <cstdint>
#include <vector>

namespace parley::inference::duplex {

/// What a unit whose choices are known (a replayed one) feeds to the model after its input, all at once.
struct known_unit {
  std::vector<token_id> fed;
  std::vector<std::int64_t> reply; ///< indices in `fed` of the tokens whose hidden states belong to the reply
  bool ends_turn = false;          ///< whether it ended the turn before it was cut while being spoken
};

/// Takes `decoder` through a unit according to its choices, into the state that it had after the original unit. Throws
/// std::runtime_error if the choices cannot belong to this unit.
known_unit walk(unit_decoder& decoder, const unit_choices& known);

} // namespace parley::inference::duplex
