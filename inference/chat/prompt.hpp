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

  std::int64_t audio_rows() const;
};

/// The tokens that stand for a sound of so many samples; by seconds, each with marks of its own, for `stream_input`.
std::string audio_placeholder(std::size_t samples, int pool_step, bool by_seconds);

/// Puts `audio` (a placeholder each, by number) into the text and encodes it. What clients wrote can't become a control
/// token when `quote_clients`. `<|listen|>` is dropped, as in the reference.
prompt_ids encode_prompt(const tokenizer& tokens, const rendered_text& text, std::span<const std::string> audio,
                         bool quote_clients);

/// Rows of the prompt, [ids, hidden]: token embeddings with `sound` dealt out over the bounds in order; surplus rows are
/// dropped. Throws std::runtime_error when there are too few.
at::Tensor embed_prompt(const llm::qwen3& model, const prompt_ids& prompt, const at::Tensor& sound);

} // namespace parley::inference::chat
