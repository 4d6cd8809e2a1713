#pragma once

#include "inference/chat/rendered_text.hpp"
#include "inference/thinker.hpp"

#include <ATen/core/Tensor.h>

#include <limits>
#include <span>
#include <string>
#include <vector>

namespace parley::inference::chat {

/// Rows [begin, end) of a prompt that do not come from token embeddings.
struct bound {
  std::int64_t begin;
  std::int64_t end;

  friend bool operator==(const bound&, const bound&) = default;
};

/// A prompt as tokens, with its placeholders (docs/model/thinker.md 6.2).
struct prompt_ids {
  std::vector<token_id> ids;
  std::vector<bound> audio;
  std::vector<bound> image; ///< one per piece of a picture

  std::int64_t audio_rows() const;
  std::int64_t image_rows() const;
};

/// The placeholder tokens for that many samples at 16 kHz (docs/model/thinker.md 6.2). `by_seconds`: one pair of marks
/// per second, for `stream_input`.
std::string audio_placeholder(std::size_t samples, int pool_step, bool by_seconds);

/// The same for a number of rows, between one pair of marks.
std::string audio_placeholder(std::int64_t rows);

/// Number of rows for the joined sounds of one message: that many samples at 16 kHz, in pieces of 30 s.
std::int64_t heard_rows(std::size_t samples, int pool_step);

/// The placeholder of each sound and each picture of a conversation, by its number.
struct placeholders {
  std::vector<std::string> audio;
  std::vector<std::string> image;
};

/// Inserts the placeholders into the text and encodes it. With `quote_clients`, text from clients cannot become a
/// control token. `<|listen|>` is dropped, as in the reference. Throws std::out_of_range when an attachment has no
/// placeholder. Once there are more than `most` tokens, the rest is left out.
prompt_ids encode_prompt(const tokenizer& tokens, const rendered_text& text, const placeholders& media,
                         bool quote_clients, std::size_t most = std::numeric_limits<std::size_t>::max());

/// Rows of the prompt, [ids, hidden] in the model's dtype: token embeddings, in which the rows of `sound` and `sight`,
/// each [rows, hidden], fill the bounds in order. Either may be undefined if it has no bounds. Surplus rows are dropped
/// (docs/model/thinker.md 6.2). Throws std::runtime_error if there are too few.
at::Tensor embed_prompt(const llm::qwen3& model, const prompt_ids& prompt, const at::Tensor& sound,
                        const at::Tensor& sight = {});

} // namespace parley::inference::chat
