#pragma once

#include "inference/llm/sampling.hpp"
#include "inference/quirks.hpp"
#include "inference/tokenizer.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

// The answer of one chat turn (THINKER.md 6.4), without a model: the engine draws and feeds tokens for many turns at
// once.
namespace parley::inference::chat {

/// Tokens that end or are kept out of an answer.
struct answer_ids {
  std::vector<token_id> terminators; ///< <|tts_eos|>, <|im_end|>, <unk>
  std::vector<token_id> unspeakable; ///< never drawn in an answer that is spoken: brackets, signs, bad_token_ids

  static answer_ids of(const tokenizer& tokens);
};

/// One answer, token by token: until it is `finished`, the caller draws a token, tells it here and feeds it to the
/// model. Belongs to one turn; not thread-safe.
class answer_decoder {
public:
  // Tokens. The reference works in chunks, and what its penalty knows moves with them.
  static constexpr int first_chunk_tokens = 11;
  static constexpr int chunk_tokens = 10;
  static constexpr int penalty_window = 128;

  /// `max_new_tokens`: at least 1; the answer is `finished` when it has as many.
  answer_decoder(tokenizer tokens, const quirks& how, int max_new_tokens);

  /// The tokens that the repetition penalty knows: the newest of earlier chunks, and all of the running one.
  std::span<const token_id> seen() const;

  /// Takes a drawn token. It must be fed unless the answer is `finished` by it.
  void drawn(token_id token, std::span<const token_id> terminators);

  /// No more tokens fit.
  void end() { full_ = true; }

  bool finished() const { return finished_ || full_; }

  /// Ended by a terminator and not by its length.
  bool complete() const { return finished_; }

  /// Text (UTF-8) that became certain since the last call; what can't become a character any more once `finished`.
  std::string take_text();

  const std::vector<token_id>& tokens() const { return tokens_; }

private:
  stream_decoder text_;
  int max_new_tokens_;
  std::vector<token_id> tokens_;
  std::size_t told_ = 0;
  bool finished_ = false;
  bool full_ = false;
  bool flushed_ = false;
};

} // namespace parley::inference::chat
