#pragma once

#include "conversation/tools.hpp"
#include "conversation/turn_request.hpp"
#include "conversation/usage.hpp"
#include "protocol/media/compact_sound.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// What is said in a piece of sound, written down by the model itself, or judged: what is asked for, and what comes back.
namespace parley::protocol {

/// How many functions one turn may want.
inline constexpr std::size_t most_turn_calls = 4;

/// Longer turns are not written down: the model hears at most this much at a time.
inline constexpr std::size_t most_transcribed_samples = std::size_t{16'000} * 30;

struct transcript_request {
  std::uint64_t number = 0; ///< of the asker's choice
  compact_sound sound;
  std::string language{}; ///< as the client names it; empty = not said
  /// The turn is not written down but judged: which of these functions does it want called, if any? Its messages come first.
  std::shared_ptr<const conversation::turn_request> offer{};
};

enum class transcript_result : std::uint8_t {
  completed,
  busy,     ///< there was no idle slot in time
  too_long, ///< more than `most_transcribed_samples`
  failed
};
inline constexpr std::string_view transcript_result_words[] = {"completed", "busy", "too_long", "failed"};

/// The answer to one request. `text` may be empty: nothing was said.
struct transcript {
  std::uint64_t number = 0;
  transcript_result result = transcript_result::completed;
  std::string text{};
  double seconds = 0;                           ///< of sound
  std::vector<conversation::tool_call> calls{}; ///< of a turn that was judged
  conversation::usage used{};                   ///< for that, which the asker counts
};

/// The result as a code and a sentence for clients; not for `completed`.
constexpr std::string_view code_of(transcript_result result) {
  switch (result) {
  case transcript_result::busy: return "server_busy";
  case transcript_result::too_long: return "audio_too_long";
  default: return "inference_error";
  }
}
constexpr std::string_view words_of(transcript_result result) {
  switch (result) {
  case transcript_result::busy: return "There was no idle slot for the transcription.";
  case transcript_result::too_long: return "Turns of more than 30 seconds are not transcribed.";
  default: return "The transcription failed.";
  }
}

} // namespace parley::protocol
