#pragma once

#include "protocol/events.hpp"
#include "protocol/field_reader.hpp"

namespace parley::protocol {

/// `config` of session.init (PROTOCOL.md 3.1); an absent one gives the defaults. What is wrong is noted in `in`.
duplex_config read_duplex_config(field_reader& in, const field& config);

} // namespace parley::protocol
