#pragma once

#include "conversation/tools.hpp"
#include "inference/chat/call_scanner.hpp"
#include "inference/decoding/mark_filter.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::inference::chat {

/// Separates the calls in a growing answer from its text. One per answer.
class call_reader {
public:
  /// The next part of the answer. Returns the text that is certainly none of a call; white space before a call is
  /// dropped.
  std::string push(std::string_view text);

  /// The answer is over. Returns the rest of its text. A call without its end is read as far as it goes.
  std::string finish();

  /// A call has begun and not ended.
  bool in_call() const { return in_call_; }

  /// In a call: what came of it so far, from <tool_call> on.
  std::string call_so_far() const { return std::string(call_begin) + waiting_; }

  std::vector<parley::conversation::tool_call>& calls() { return calls_; }

  /// What is new of the calls: their names and arguments as they come. A call that is not in the usual form comes at its
  /// end.
  std::vector<parley::conversation::call_piece> take_pieces() { return std::exchange(pieces_, {}); }

private:
  std::size_t find_end();
  void scan_call(std::string_view body);
  void read_call(std::string_view body);
  void add(std::string name, std::string arguments);

  std::string waiting_; ///< what may belong to a call
  bool in_call_ = false;

  // Of the call that has begun:
  std::size_t searched_ = 0; ///< bytes in which its end was looked for
  bool in_string_ = false;   ///< there
  bool escaped_ = false;
  bool endless_ = false; ///< what came is not JSON, and whatever follows will not make it so
  call_scanner scanner_;

  std::vector<parley::conversation::tool_call> calls_;
  std::vector<parley::conversation::call_piece> pieces_;
};

} // namespace parley::inference::chat
