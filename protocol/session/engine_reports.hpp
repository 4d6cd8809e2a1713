#pragma once

#include "conversation/answer.hpp"
#include "protocol/events.hpp"

#include <cstdint>
#include <string>

// Reports from the engine to a session, in this layer's terms; the session actor converts them (inference/unit.hpp).
namespace parley::protocol {

/// The prompt has been prefilled; chat has none, so everything is 0.
struct engine_opened {
  int prompt_tokens = 0;
  usage prompt_usage;
};

/// One delta of a step. Within a step: `listen` alone, or at most one `text`, then at most one `audio`.
struct step_report {
  std::uint64_t unit = 0;
  output_kind kind = output_kind::listen;
  std::string text;
  pcm audio;         ///< 24 kHz
  bool first = true; ///< `used` holds the step's tokens
  bool last = true;  ///< `measured` is complete
  bool end_of_turn = false;
  usage used;
  metrics measured;
};

/// A piece of a chat answer: text, or sound if `audio` is set.
struct turn_report {
  std::uint64_t turn = 0;
  std::string text;
  pcm audio;                            ///< 24 kHz
  std::vector<token_score> scores = {}; ///< of the text's tokens
  std::vector<conversation::call_piece> calls = {};
};

using conversation::failure_kind;
using conversation::finish_reason;

/// The end of a turn.
struct turn_done_report {
  std::uint64_t turn = 0;
  finish_reason reason = finish_reason::turn_end;
  std::string text; ///< the whole answer, once
  pcm audio;        ///< the whole sound, 24 kHz; null without speech, or if it has been sent in reports
  usage used;
  metrics measured;
  std::vector<conversation::tool_call> calls = {};
  std::vector<token_score> scores = {}; ///< those that no report had
};

/// An open (while INITIALIZING), a unit or a turn failed.
struct engine_failure {
  std::uint64_t number = 0; ///< number of the unit or turn
  failure_kind kind = failure_kind::inference;
  std::string message;
};

} // namespace parley::protocol
