#pragma once

#include "inference/text/tokenizer.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace parley::inference::chat {

enum class medium { image, audio };

/// A picture or a sound in a text: its placeholder is at bytes [begin, end).
struct attachment {
  std::size_t begin;
  std::size_t end;
  medium kind;
  std::size_t number; ///< its number among those of its kind in the conversation
};

/// A text that remembers which of its bytes came from clients, and where pictures and sounds belong.
struct rendered_text {
  std::string text;
  std::vector<tokenizer::stretch> quoted; ///< ascending, disjoint
  std::vector<attachment> attachments;    ///< ascending

  /// Adds our own text: template and control tokens.
  void add(std::string_view ours);

  /// Adds a client's text, made valid UTF-8.
  void quote(std::string_view theirs);

  /// Adds the placeholder of a picture or sound and remembers its position.
  void attach(medium kind, std::size_t number);

  /// Appends bytes [begin, end) of another text, with the quotes and attachments in that range.
  void add(const rendered_text& other, std::size_t begin, std::size_t end);
  void add(const rendered_text& other) { add(other, 0, other.text.size()); }

  /// How a placeholder is written before it is replaced by tokens (docs/model/thinker.md 6.1).
  static std::string_view placeholder(medium kind);
};

} // namespace parley::inference::chat
