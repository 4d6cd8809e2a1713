#pragma once

#include "inference/chat/rendered_text.hpp"
#include "inference/unit.hpp"

#include <span>

namespace parley::inference::chat {

/// A message whose content is one text already (THINKER.md 6.1).
struct template_message {
  role from;
  rendered_text content;
};

/// The reference's arguments of the template, by their names there.
struct template_options {
  bool generation_prompt = true; ///< ends with what opens the assistant's turn
  bool enable_thinking = false;  ///< false: that opening holds a think block which is closed already
  bool use_tts_template = false; ///< it ends with <|tts_bos|>: the answer can be spoken
};

/// The chat template of tokenizer_config.json, without tools (THINKER.md 6.1).
rendered_text apply_template(std::span<const template_message> messages, const template_options& options);

/// What opens the assistant's turn: role, closed thinking, <|tts_bos|>.
std::string generation_prompt(const template_options& options);

} // namespace parley::inference::chat
