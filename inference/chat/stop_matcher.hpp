#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace parley::inference::chat {

/// Finds where a growing answer has to stop, and keeps back what may be the beginning of a stop string. Of several, the
/// one that ends first counts, then the longest, so the result does not depend on how the text was cut. One per answer.
class stop_matcher {
public:
  /// `stops`: UTF-8, none of them empty.
  explicit stop_matcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// The text of the next token; empty if the token is only a part of a character. Returns the text that is certainly
  /// none of a stop string. Not to be called once `found`.
  std::string push(std::string_view text);

  /// The answer is over. Returns the rest of its text.
  std::string finish();

  bool found() const { return found_; }

  /// The number of tokens whose text lies before what is kept back, or before the stop.
  std::size_t tokens_told() const;

private:
  std::string tell(std::size_t bytes);
  std::size_t kept_back() const;

  std::vector<std::string> stops_;
  std::string waiting_;
  std::size_t told_ = 0;          ///< bytes
  std::vector<std::size_t> ends_; ///< of the tokens whose characters are complete, in bytes of the text
  std::size_t partial_ = 0;       ///< tokens behind them
  bool found_ = false;
};

} // namespace parley::inference::chat
