#pragma once

#include "inference/tokenizer.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace parley::inference::chat {

enum class medium { image, audio };

/// A picture or a sound in a text: its placeholder lies at bytes [begin, end).
struct attachment {
  std::size_t begin;
  std::size_t end;
  medium kind;
  std::size_t number; ///< the how-manieth of its kind in the conversation
};

/// A text that remembers which of its bytes clients wrote and where pictures and sounds belong.
struct rendered_text {
  std::string text;
  std::vector<tokenizer::stretch> quoted; ///< ascending, apart
  std::vector<attachment> attachments;    ///< ascending

  /// Text of ours: template and control tokens.
  void add(std::string_view ours);

  /// Text of a client; made valid UTF-8.
  void quote(std::string_view theirs);

  /// Writes the placeholder of a picture or sound and remembers where it lies.
  void attach(medium kind, std::size_t number);

  /// Bytes [begin, end) of another text with what belongs to them.
  void add(const rendered_text& other, std::size_t begin, std::size_t end);
  void add(const rendered_text& other) { add(other, 0, other.text.size()); }

  /// How a placeholder is written before it is replaced by tokens (THINKER.md 6.1).
  static std::string_view placeholder(medium kind);
};

} // namespace parley::inference::chat
