#pragma once

#include "protocol/errors.hpp"

#include <string>
#include <string_view>

namespace parley::protocol {

/// `audio.format` of the request; `none` = the answer is text.
enum class sound_format { none, wav, pcm16 };

/// A request of `POST /v1/chat/completions` as one chat turn.
struct openai_request {
  std::string append; ///< input.append for the session (PROTOCOL.md 3.5), a text frame
  std::string model;  ///< as it was asked for; any name is good
  bool streaming = false;
  bool include_usage = false; ///< a last chunk with the usage
  sound_format sound = sound_format::none;
};

/// Reads text, `image_url` parts with data URLs, `input_audio` parts (WAV), and the usual numbers. What would change
/// the answer and is not there (tools, several choices, stop words, other formats) is refused, other unknown fields are
/// ignored. Sound and pictures are neither decoded nor checked here: the session does that. Errors say which field.
result<openai_request> read_openai_request(std::string_view body);

} // namespace parley::protocol
