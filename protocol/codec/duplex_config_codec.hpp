#pragma once

#include "protocol/events.hpp"
#include "protocol/json/field_reader.hpp"

namespace parley::protocol {

/// Reads `config` of session.init (docs/protocol.md 3.1) into the options and the seed of `into`; absent fields leave
/// them unchanged, `generation` aside. Errors are recorded in `in`.
void read_duplex_config(field_reader& in, const field& config, init_event& into);

/// The same of its `generation`, where upstream's next protocol has some of the options. Is called first: the outer ones win.
void read_generation(field_reader& in, const field& config, init_event& into);

/// Refuses what that would, of options that never were text.
void check_duplex_config(field_reader& in, const conversation::duplex_options& config);

} // namespace parley::protocol
