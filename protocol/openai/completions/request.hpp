#pragma once

#include "protocol/errors.hpp"

#include <memory>
#include <string>

namespace parley::protocol {

struct openai_prompt;

/// `audio.format` of the request; `none` = the answer is text.
enum class sound_format { none, wav, pcm16 };

/// A request of `POST /v1/chat/completions`: how it wants to be answered, and what the model is asked.
struct openai_request {
  std::shared_ptr<const openai_prompt> prompt;
  std::string model; ///< as requested; any name of at most 256 bytes is accepted
  bool streaming = false;
  bool include_usage = false; ///< send a last chunk with the usage
  sound_format sound = sound_format::none;
  int choices = 1;     ///< how many answers to the same messages
  bool scored = false; ///< report how likely the tokens were
};

/// Reads text, `image_url` parts with data URLs, `input_audio` parts (files; their bytes say which kind), and the usual numbers. Unsupported fields
/// that would change the answer (`functions`) are refused; other unknown fields are ignored. Sound and pictures are
/// neither decoded nor checked here: `completion_turn` does that. Errors name the field.
result<openai_request> read_openai_request(std::string body);

} // namespace parley::protocol
