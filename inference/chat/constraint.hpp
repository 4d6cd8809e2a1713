#pragma once

#include "grammar/json_state.hpp"
#include "inference/llm/sampling.hpp"
#include "inference/text/tokenizer.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parley::inference::chat {

/// Keeps the tokens of an answer within a grammar, and its end within a number of tokens. One per answer.
///
/// Only the likeliest tokens are tested, because they nearly always contain one that fits: a whole vocabulary is gone
/// through when none does.
class constraint {
public:
  static constexpr std::size_t tested = 256;
  static constexpr std::size_t most_tested = 4096; ///< where none of those fits

  constraint(std::shared_ptr<const grammar::json_grammar> rules, tokenizer tokens);

  /// The text goes on with these bytes. False if they do not fit; the constraint is then of no use any more.
  bool take(std::string_view bytes) {
    const bool fits = state_.feed(bytes);
    state_.forget();
    return fits;
  }
  bool take_token(token_id token) { return take(tokens_.bytes(token)); }

  bool done() const { return state_.done(); }

  /// Makes tokens impossible that do not fit. `left`: tokens that the answer may still have, this one included. Throws
  /// std::runtime_error if no token is left.
  void restrict(std::span<float> logits, std::int64_t left);

  /// The same in a row that has the largest logits; false, with nothing changed, if the whole row is needed.
  bool restrict(llm::short_row& row, std::int64_t left) const;

private:
  bool fits(token_id token, std::int64_t left) const;
  bool is_short_of_room(std::int64_t left) const;
  void leave_only_fitting(std::span<float> logits, std::int64_t left);
  void end_soon(std::span<float> logits) const;
  token_id towards_the_end() const;

  std::shared_ptr<const grammar::json_grammar> grammar_;
  tokenizer tokens_;
  grammar::json_state state_;
  mutable grammar::json_state after_; ///< a candidate
  std::vector<float> heap_;
};

} // namespace parley::inference::chat
