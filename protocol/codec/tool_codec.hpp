#pragma once

#include "conversation/tools.hpp"
#include "conversation/turn_request.hpp"
#include "protocol/json/field_reader.hpp"

#include <vector>

// The functions of a chat request (docs/protocol.md 3.8).
namespace parley::protocol {

/// Reads `tools` and `tool_choice`, which may be absent.
void read_tools(field_reader& in, const field& tools, const field& choice, conversation::turn_request& out);

/// Reads `tool_calls` of an assistant's message; absent = none.
std::vector<conversation::tool_call> read_tool_calls(field_reader& in, const field& from);

} // namespace parley::protocol
