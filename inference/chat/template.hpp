#pragma once

#include "inference/chat/rendered_text.hpp"
#include "inference/unit.hpp"

#include <span>

namespace parley::inference::chat {

struct template_message {
  role from;
  rendered_text content;
};

struct template_options {
  bool generation_prompt = true;
  bool enable_thinking = false;
  bool use_tts_template = false;
};

/// The chat template of tokenizer_config.json, without tools (THINKER.md 6.1).
rendered_text apply_template(std::span<const template_message> messages, const template_options& options);

/// What opens the assistant's turn: role, closed thinking, <|tts_bos|>.
std::string generation_prompt(const template_options& options);

} // namespace parley::inference::chat
