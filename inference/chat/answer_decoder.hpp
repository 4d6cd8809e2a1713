#pragma once

#include "inference/llm/sampling.hpp"
#include "inference/quirks.hpp"
#include "inference/text/tokenizer.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

// The answer of one chat turn (docs/model/thinker.md 6.4), without a model: the engine draws and feeds tokens for many
// turns at once.
namespace parley::inference::chat {

/// Tokens that end an answer or are kept out of it.
struct answer_ids {
  std::vector<token_id> terminators; ///< <|tts_eos|>, <|im_end|>, <unk>
  std::vector<token_id> unspeakable; ///< never sampled in a spoken answer: brackets, signs, bad_token_ids

  static answer_ids of(const tokenizer& tokens);
};

/// One answer, token by token: until it is `finished`, the caller draws a token, passes it in, and feeds it to the
/// model. Used for one turn; not thread-safe.
class answer_decoder {
public:
  // In tokens. The reference works in chunks, and what its penalty sees moves with them.
  static constexpr int first_chunk_tokens = 11;
  static constexpr int chunk_tokens = 10;
  static constexpr int penalty_window = 128;

  /// `max_new_tokens`: at least 1; after that many, the answer is `finished`.
  answer_decoder(tokenizer tokens, const quirks& how, int max_new_tokens);

  /// The tokens that the repetition penalty sees: the newest of earlier chunks, and all of the current one.
  std::span<const token_id> seen() const;

  /// Takes a sampled token. It must be fed unless it made the answer `finished`.
  void sampled(token_id token, std::span<const token_id> terminators);

  /// No more tokens fit.
  void end() { full_ = true; }

  bool finished() const { return finished_ || full_; }

  /// Whether it was ended by a terminator rather than by its length.
  bool complete() const { return finished_; }

  /// Text (UTF-8) that has become certain since the last call; once `finished`, also what can no longer become a
  /// character.
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
