#pragma once

#include <cstddef>
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

/// The next part of a call in a growing answer. All parts together are the call.
struct call_piece {
  std::size_t number = 0; ///< of the call in the answer, from 0
  std::string name;       ///< whole, in the first piece; empty in later ones
  std::string arguments;
};

/// All members, for archives.
template<class A>
void fields(A& a, call_piece& of) {
  auto& [number, name, arguments] = of;
  a(number, name, arguments);
}

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
