#pragma once

#include "conversation/message.hpp"
#include "protocol/json/field_reader.hpp"

#include <string>
#include <vector>

// What the messages of a chat and those for a duplex session have in common (docs/protocol.md 3.5, 3.9).
namespace parley::protocol {

/// Reads `role`, which must be a string.
conversation::role read_role(field_reader& in, const field& from);

/// Reads `context`, which may be absent. Its length is counted before anything is copied.
std::vector<conversation::text_message> read_context(field_reader& in, const field& from);

/// Refuses what that would, of a context that never was text.
void check_context(field_reader& in, const std::string& path, const std::vector<conversation::text_message>& context);

} // namespace parley::protocol
