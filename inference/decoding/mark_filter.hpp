#pragma once

#include <array>
#include <string>
#include <string_view>

namespace parley::inference::chat {

inline constexpr std::string_view call_begin = "<tool_call>";
inline constexpr std::string_view call_end = "</tool_call>";

/// What the template writes around calls and their results. None of it is for readers (docs/protocol.md 3.8).
inline constexpr std::array<std::string_view, 4> tool_marks{call_begin, call_end, "<tool_response>",
                                                            "</tool_response>"};

/// Takes the marks out of a growing text, whatever tokens they are made of. One per answer.
class mark_filter {
public:
  /// The next part of the text. Returns what is certainly no part of a mark.
  std::string push(std::string_view text);

  /// The text is over. Returns the rest.
  std::string finish();

private:
  std::string waiting_;
};

/// A whole text without the marks.
std::string without_marks(std::string_view text);

} // namespace parley::inference::chat
