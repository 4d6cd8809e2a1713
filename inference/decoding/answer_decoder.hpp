#pragma once

#include "inference/llm/sampling.hpp"
#include "inference/quirks.hpp"
#include "inference/text/tokenizer.hpp"

#include <cstdint>
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
  // In tokens. The reference generates in chunks, which determine what its penalty sees.
  static constexpr int first_chunk_tokens = 11;
  static constexpr int chunk_tokens = 10;
  static constexpr int penalty_window = 128;

  /// `max_new_tokens`: at least 1; after that many, the answer is `finished`.
  answer_decoder(tokenizer tokens, const quirks& how, int max_new_tokens);

  /// The tokens that the repetition penalty sees: the last tokens of earlier chunks, and all of the current chunk.
  std::span<const token_id> seen() const;

  /// Takes a sampled token. The caller must feed it unless the answer is now `finished`.
  void sampled(token_id token, std::span<const token_id> terminators);

  /// Ends the answer because it is whole, without a terminator.
  void complete_here() { finished_ = true; }

  /// Tokens that the answer may still have.
  std::int64_t left() const { return max_new_tokens_ - std::ssize(tokens_); }

  /// Ends the answer because no more tokens fit.
  void end() { full_ = true; }

  bool finished() const { return finished_ || full_; }

  /// Whether a terminator ended the answer, rather than its length limit.
  bool complete() const { return finished_; }

  /// Text (UTF-8) that has become certain since the last call. Once `finished`, this includes bytes that can no longer
  /// become a character.
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
