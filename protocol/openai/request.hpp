#pragma once

#include "protocol/errors.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace parley::protocol {

/// `audio.format` of the request; `none` = the answer is text.
enum class sound_format { none, wav, pcm16 };

/// A request of `POST /v1/chat/completions` as one chat turn.
struct openai_request {
  std::string append; ///< a text frame for the session: input.append (docs/protocol.md 3.5)
  std::string model;  ///< as requested; any name of at most 256 bytes is accepted
  bool streaming = false;
  bool include_usage = false; ///< send a last chunk with the usage
  sound_format sound = sound_format::none;
  int choices = 1;     ///< how many answers to the same messages
  bool scored = false; ///< report how likely the tokens were

  /// If the answer has a seed; each choice has the next one.
  struct seed_place {
    std::uint64_t seed;
    std::size_t begin, bytes; ///< its digits in `append`
  };
  std::optional<seed_place> seed{};
};

/// Reads text, `image_url` parts with data URLs, `input_audio` parts (files; their bytes say which kind), and the usual numbers. Unsupported fields
/// that would change the answer (`functions`) are refused; other unknown fields are ignored. Sound and pictures are
/// neither decoded nor checked here: the session does that. Errors name the field.
result<openai_request> read_openai_request(std::string_view body);

} // namespace parley::protocol
