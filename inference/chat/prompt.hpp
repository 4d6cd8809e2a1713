#pragma once

#include "inference/chat/rendered_text.hpp"
#include "inference/thinker.hpp"

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

namespace parley::inference::chat {

/// Rows [begin, end) of a prompt that are not embedded from tokens.
struct bound {
  std::int64_t begin;
  std::int64_t end;

  friend bool operator==(const bound&, const bound&) = default;
};

/// A prompt as tokens, with its placeholders (THINKER.md 6.2).
struct prompt_ids {
  std::vector<token_id> ids;
  std::vector<bound> audio;
  std::vector<bound> image; ///< one a piece of a picture

  std::int64_t audio_rows() const;
  std::int64_t image_rows() const;
};

/// The tokens that stand for a sound of so many samples at 16 kHz (THINKER.md 6.2); by seconds, each with marks of its
/// own, for `stream_input`.
std::string audio_placeholder(std::size_t samples, int pool_step, bool by_seconds);

/// The same for so many rows, between one pair of marks.
std::string audio_placeholder(std::int64_t rows);

/// How many rows the sounds of one message, joined, give: so many samples at 16 kHz, in pieces of 30 s.
std::int64_t heard_rows(std::size_t samples, int pool_step);

/// What stands for each sound and each picture of a conversation, by number.
struct placeholders {
  std::vector<std::string> audio;
  std::vector<std::string> image;
};

/// Puts the placeholders into the text and encodes it. What clients wrote can't become a control token when
/// `quote_clients`. `<|listen|>` is dropped, as in the reference. Throws std::out_of_range when an attachment has no
/// placeholder.
prompt_ids encode_prompt(const tokenizer& tokens, const rendered_text& text, const placeholders& media,
                         bool quote_clients);

/// Rows of the prompt, [ids, hidden] of the model's dtype: token embeddings with the rows of `sound` and of `sight`,
/// each [rows, hidden], dealt out over the bounds in order; either may be undefined when nothing is bound to it.
/// Surplus rows are dropped (THINKER.md 6.2). Throws std::runtime_error when there are too few.
at::Tensor embed_prompt(const llm::qwen3& model, const prompt_ids& prompt, const at::Tensor& sound,
                        const at::Tensor& sight = {});

} // namespace parley::inference::chat
