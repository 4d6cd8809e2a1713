#pragma once

#include "inference/chat/rendered_text.hpp"
#include "inference/vocabulary.hpp"

#include <span>
#include <string>
#include <vector>

namespace parley::inference::chat {

/// A message whose content is already a single text (docs/model/thinker.md 6.1).
struct template_message {
  role from;
  rendered_text content;
  std::vector<parley::conversation::tool_call> calls = {}; ///< of the assistant
};

/// The template arguments of the reference, under the same names.
struct template_options {
  bool generation_prompt = true; ///< end with the opening of the assistant's turn
  bool enable_thinking = false;  ///< false: that opening contains a think block that is already closed
  bool use_tts_template = false; ///< end with <|tts_bos|>: the answer can be spoken
};

/// The chat template of tokenizer_config.json (docs/model/thinker.md 6.1).
rendered_text apply_template(std::span<const template_message> messages, const template_options& options,
                             std::span<const parley::conversation::tool> tools = {});

/// The opening of the assistant's turn: role, closed think block, <|tts_bos|>.
std::string generation_prompt(const template_options& options);

} // namespace parley::inference::chat
