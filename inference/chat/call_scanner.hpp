#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace parley::inference::chat {

/// Reads the name and the arguments of a call while it is being written, as far as it has the form in which the model
/// learned to call: {"name": "f", "arguments": {…}}. One per call.
class call_scanner {
public:
  /// `body`: all that has come since <tool_call>. Returns the arguments that are new, without white space between
  /// their tokens.
  std::string scan(std::string_view body);

  /// Once the name is known; until then empty.
  const std::string& name() const { return name_; }

  /// All arguments so far.
  const std::string& arguments() const { return arguments_; }

  /// It has another form, so that nothing can be said before its end.
  bool lost() const { return at_ == state::lost; }

private:
  enum class state { opening, arguments, over, lost };

  bool read_opening(std::string_view body);
  void take(char c);

  state at_ = state::opening;
  std::size_t scanned_ = 0; ///< bytes of the body
  std::string name_;
  std::string arguments_;
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

} // namespace parley::inference::chat
