#pragma once

#include "protocol/json/document.hpp"
#include "protocol/openai/shared/budget.hpp"
#include "protocol/openai/shared/fault.hpp"
#include "protocol/openai/shared/field_set.hpp"
#include "protocol/speech/sound.hpp"

#include <cstdint>
#include <optional>
#include <string>

// The state of a session that clients set with `session.update` and that the server echoes whole.
namespace parley::protocol::openai::realtime {

/// How the user's turns are found.
struct turn_detection {
  enum class kind : std::uint8_t { none, server_vad, semantic_vad };
  kind type = kind::semantic_vad;
  bool create_response = true;
  bool interrupt_response = true;
  double threshold = 0.5;         ///< server_vad
  int prefix_padding_ms = 300;    ///< server_vad
  int silence_duration_ms = 500;  ///< server_vad
  std::string eagerness = "auto"; ///< semantic_vad: low, medium, high or auto
};

/// `audio.input.transcription`: what the client asked for.
struct transcription_wish {
  bool given = false;
  std::string model{};
  std::string language{}; ///< here and below: empty = not said
  std::string prompt{};   ///< echoed only
};

struct session_config {
  std::string model = "parley"; ///< as the client names it: any name is right
  std::string instructions{};   ///< empty = the server's default prompt
  bool audible = true;          ///< answers are spoken
  speech::sound_format input{};
  speech::sound_format output{};
  turn_detection turns{};
  std::string voice = "alloy"; ///< as the client names it; at first one that all clients know
  double speed = 1.0;          ///< echoed only
  int max_output_tokens = 0;   ///< of one answer; 0 = "inf"
  // As the client wrote them, JSON:
  std::string tools = "[]";
  std::string tool_choice = R"("auto")";
  std::string tracing = "null";
  std::string truncation = R"("auto")";
  transcription_wish transcription{};
  bool can_transcribe = false; ///< the server's choice; if not, null is echoed

  bool wants_transcripts() const { return can_transcribe && transcription.given; }
};

inline constexpr std::size_t max_instructions_bytes = 32'768;
inline constexpr int max_answer_tokens = 4096; ///< what `max_output_tokens` may ask for

/// Changes what the object `session` of a `session.update` names. On a fault nothing is changed. `event` pays for the check of strict
/// schemas; null = they have been checked.
result<session_config> updated(const session_config& before, json::value session, event_sound* event);

/// The session as `session.created` and `session.updated` show it. `expires_at`: Unix time.
std::string encode_session(const session_config& of, std::string_view id, std::int64_t expires_at_s);

// Fields that a response may override as well.
void read_output_modalities(field_set& from, bool& audible);
void read_max_output_tokens(field_set& from, int& into);
void read_output_audio(field_set& from, speech::sound_format& format, std::string& voice);
void read_instructions(field_set& from, std::string& into);
void read_tools(field_set& from, std::string& tools, std::string& choice, event_sound* event);

/// Checks the functions among the `tools` of an object, at most 128 tools; other tools are let be.
void check_functions(field_set& from, event_sound& event);

} // namespace parley::protocol::openai::realtime
