#pragma once

#include "conversation/tools.hpp"
#include "conversation/turn_request.hpp"
#include "protocol/json/field_reader.hpp"

#include <cstddef>
#include <string>
#include <vector>

// The functions of a chat request (docs/protocol.md 3.8).
namespace parley::protocol {

/// Which tools an answer may call, as the client chose.
struct tool_choice {
  enum class how { any, none, required };
  how mode = how::any;
  std::string name{};                 ///< with `required`: the one; empty = whichever
  std::vector<std::string> allowed{}; ///< of these only; empty = of all
};

/// Reads one tool. All that is wrong with it is found here, in every dialect.
conversation::tool read_tool(field_reader& in, const field& from);

/// Reads `tools`, which may be absent.
std::vector<conversation::tool> read_tool_list(field_reader& in, const field& tools);

/// Reads `tool_choice`, which may be absent: a word, the name of a function, or an object as the chat completions or the
/// Realtime API have it. A function is one of `tools`.
tool_choice read_tool_choice(field_reader& in, const field& choice, const std::vector<conversation::tool>& tools);

/// Both of a chat request. What requires a call requires tools.
void read_tools(field_reader& in, const field& tools, const field& choice, conversation::turn_request& out);

/// Refuses what these would, of tools that an event brings. `written`: how many bytes their list has in JSON; 0 = it never was
/// text.
void check_tools(field_reader& in, const std::string& path, const conversation::turn_request& of,
                 std::size_t written = 0);
void check_tool_calls(field_reader& in, const std::string& path, const std::vector<conversation::tool_call>& calls);

/// Reads `tool_calls` of an assistant's message; absent = none.
std::vector<conversation::tool_call> read_tool_calls(field_reader& in, const field& from);

/// The id of a call, on the call or on its result; empty if absent.
std::string read_call_id(field_reader& in, const field& from);

} // namespace parley::protocol
