#pragma once

#include "conversation/message.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parley::conversation {

/// One self-contained chat request: a conversation, and options for its answer (docs/protocol.md 3.5). The model
/// decides what is not set.
struct turn_request {
  std::vector<message> messages;
  int max_new_tokens = 256;
  double length_penalty = 1.1;
  std::optional<double> temperature;
  std::optional<int> top_k;
  std::optional<double> top_p;
  std::optional<bool> do_sample;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop; ///< the answer ends before the first of them
  std::optional<int> max_slice_nums;
  bool omni_mode = false;
  bool use_tts_template = false; ///< implied by `tts`
  bool enable_thinking = false;
  bool tts = false;           ///< the answer should also be spoken
  pcm tts_voice;              ///< 16 kHz; null = the server's default
  bool streaming = true;      ///< the answer comes in deltas; otherwise all at once, with the sound of the whole text
  std::vector<tool> tools;    ///< functions that the answer may call
  bool tool_required = false; ///< the answer must be a call
  std::string tool_name;      ///< of this function; empty = of any
  std::string answer_schema;  ///< JSON schema that the answer obeys; empty = any text
  bool call_pieces = false;   ///< calls come in pieces, too
  std::optional<int> scored;  ///< report how likely each token was, and this many others
};

/// All members, for archives (actors/bytes/byte_archive.hpp): a new member does not compile until it is added here.
template<class A>
void fields(A& a, turn_request& of) {
  auto& [messages, most, penalty, temperature, top_k, top_p, sample, seed, stop, slices, omni, tts_template, thinking,
         tts, voice, streaming, tools, required, name, schema, pieces, scored] = of;
  a(messages, most, penalty, temperature, top_k, top_p, sample, seed, stop, slices, omni, tts_template, thinking, tts,
    voice, streaming, tools, required, name, schema, pieces, scored);
}

} // namespace parley::conversation
