#pragma once

#include <string>

// Functions that an answer may call (docs/protocol.md 3.8).
namespace parley::conversation {

/// A function that the client offers.
struct tool {
  std::string name;
  std::string signature;  ///< JSON on one line, as the template shows it to the model
  std::string parameters; ///< JSON schema of its arguments; empty = any object
};

/// A call of a function, in an answer or in the history.
struct tool_call {
  std::string id; ///< empty until the protocol has named it
  std::string name;
  std::string arguments; ///< JSON
};

/// All members, for archives.
template<class A>
void fields(A& a, tool& of) {
  auto& [name, signature, parameters] = of;
  a(name, signature, parameters);
}

template<class A>
void fields(A& a, tool_call& of) {
  auto& [id, name, arguments] = of;
  a(id, name, arguments);
}

} // namespace parley::conversation
