#pragma once

#include "conversation/answer.hpp"
#include "conversation/duplex_options.hpp"
#include "conversation/media.hpp"
#include "conversation/message.hpp"
#include "conversation/token_score.hpp"
#include "conversation/turn_request.hpp"
#include "conversation/usage.hpp"
#include "protocol/errors.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// The vocabulary of the wire: what clients send and what the server answers, the same for both dialects
// (docs/protocol.md sections 3 and 4).
namespace parley::protocol {

/// Fixed by the first accepted session.init or session.update (docs/protocol.md 2).
enum class dialect : std::uint8_t { undecided, current, legacy };

/// `?mode=` (docs/protocol.md 1).
enum class mode : std::uint8_t { chat, audio, video };

/// Its name on the wire.
constexpr std::string_view name_of(mode kind) {
  constexpr std::array<std::string_view, 3> names{"chat", "audio", "video"};
  return names[static_cast<std::size_t>(kind)];
}

using conversation::image_file;
using conversation::pcm;
using conversation::text_message;
using conversation::token_score;
using conversation::window_mode;

// ---- client events

/// Something that an init asks for and does not get (docs/protocol.md 3.1).
struct refused_wish {
  std::string field; ///< its path in `payload`
  std::string why;
};

/// session.init and session.update (docs/protocol.md 3.1, 3.2).
struct init_event {
  dialect spoken = dialect::current;
  std::string system_prompt; ///< with the default filled in, except in chat
  bool has_system_prompt = false;
  conversation::duplex_options config;
  std::optional<std::uint64_t> seed; ///< `config.seed`; none = the server's
  bool unit_responses =
      false; ///< `config.unit_responses`: each unit's answer is its own response (docs/protocol.md 15)
  bool transcribe_input =
      false; ///< `config.transcribe_input`: the client wants what its user says (docs/protocol.md 16)
  bool listen_at_turn_end = false; ///< `config.listen_at_turn_end`: a turn's last second ends with a `listen`
  int max_slice_nums = 1;
  pcm voice;     ///< reference voice for the LLM, 16 kHz; null = none
  pcm tts_voice; ///< reference voice for the vocoder, or a copy of `voice`; null = the server's default
  std::optional<bool> turn_based;    ///< `payload.mode`; read only when the URL names no mode
  bool resume = false;               ///< the client wants to be able to resume after losing its connection
  conversation::turn_request offer;  ///< the tools: in chat, of turns that name none; otherwise docs/protocol.md 17
  bool wants_audio = false;          ///< it names `config.generate_audio`
  std::vector<refused_wish> refused; ///< what it asks for in vain, as far as that is known
};

/// input.append in video and audio, input_audio_buffer.append (docs/protocol.md 3.3, 3.4).
struct append_event {
  pcm samples;                    ///< 16 kHz, 1 … 160 000; null if there is only context
  std::vector<image_file> frames; ///< at most 4; empty in audio
  bool force_listen = false;
  std::optional<int> max_slice_nums; ///< none = the session's
  std::string input_id;              ///< the client's own name for this input; empty = none
  std::vector<text_message> context; ///< what the model should know from here on (docs/protocol.md 3.9)
};

using conversation::audio_item;
using conversation::content_item;
using conversation::image_item;
using conversation::message;
using conversation::role;
using conversation::text_item;
using conversation::video_item;

/// input.append in chat (docs/protocol.md 3.5).
struct chat_append_event : conversation::turn_request {
  std::string input_id;     ///< as in `append_event`
  bool names_tools = false; ///< it has `tools` or `tool_choice`, so that those of the init are not meant
  // Of a client inside the process, as its own client wrote them, JSON: for recordings.
  std::string tools_as_written, tool_choice_as_written, format_as_written;
};

/// input.tool_result in audio and video (docs/protocol.md 17).
struct tool_result_event {
  std::string call_id;
  std::string result;     ///< 1 … `max_tool_result_bytes` bytes, unless it was cancelled
  bool cancelled = false; ///< there will be none, and the model is told nothing
};

/// session.close (docs/protocol.md 3.6).
struct close_event {
  std::string reason; ///< as sent if it is `^[a-z0-9_]{1,64}$`, else "user_stop"
};

/// What a client inside the process says to its session, which others write as frames of the current dialect.
using client_event = std::variant<init_event, append_event, chat_append_event, tool_result_event, close_event>;

// ---- what server events carry

using conversation::usage;

/// docs/protocol.md 4.1: unset values are not sent. Times in milliseconds.
struct metrics {
  std::string_view backend; ///< what runs the model; a constant of the program
  std::optional<int> kv_cache_length;
  std::optional<double> prefill_ms;
  std::optional<double> generate_ms;
  std::optional<double> wall_clock_ms;
  std::optional<double> cost_llm_ms;
  std::optional<double> cost_tts_prep_ms;
  std::optional<double> cost_tts_ms;
  std::optional<double> cost_token2wav_ms;
  std::optional<double> queue_ms;
  std::optional<int> n_tokens;
  std::optional<int> n_tts_tokens;
  std::optional<int> vision_slices;
  std::optional<int> vision_tokens;
  std::optional<std::int64_t> dropped_chunks;
  std::optional<std::int64_t> backlog_samples;
  std::optional<int> window_events;
};

// ---- server events

/// A client's position in the queue (docs/protocol.md 7).
struct queue_position {
  int position = 1; ///< 1 = next
  double estimated_wait_s = 0;
  std::string ticket_id;
  int queue_length = 1; ///< clients waiting now, including this one
};
struct session_queued {
  queue_position place;
};
struct session_queue_update {
  queue_position place;
};
struct session_queue_done {};

/// The session is ACTIVE.
struct session_created {
  std::string session_id;           ///< for clients inside the process; frames have it from their `encode_context`
  std::optional<int> prompt_length; ///< tokens of the prefilled prompt
  bool turn_based = false;
  metrics measured;
  usage total;
  std::optional<std::string> recording_id;
  std::optional<std::string> resume_token; ///< set if the session outlives its connection ...
  double resume_seconds = 0;               ///< ... for this long (docs/protocol.md 14)
  std::vector<std::string> granted;        ///< of the init's wishes (docs/protocol.md 3.1)
  std::vector<refused_wish> refused;
};

/// The first event on a connection that resumes a session (docs/protocol.md 14).
struct session_resumed {
  std::string resume_token; ///< for the next time
  std::uint64_t inputs = 0; ///< append events received so far
  std::uint64_t resent = 0; ///< how many earlier events follow again
};

using conversation::output_kind;

/// One delta. The legacy dialect merges a step's text and audio deltas into one event.
struct output_delta {
  output_kind kind = output_kind::listen;
  std::string text;
  pcm audio; ///< 24 kHz
  std::string response_id;
  std::string input_id;
  std::optional<std::int64_t> chunk_index; ///< on a step's first delta, together with both usages
  std::optional<usage> chunk_usage;
  std::optional<usage> total;
  bool end_of_turn = false;
  metrics measured;
  std::string turn_id;      ///< with `config.unit_responses`; otherwise empty and not sent
  bool closes_turn = false; ///< this is the `listen` of `config.listen_at_turn_end`, with the last delta's metrics
  std::vector<token_score> scores = {}; ///< in chat, if asked for: of the text's tokens
};

/// A function that the answer calls (docs/protocol.md 3.8); all come before the `response_done` of their turn.
struct response_tool_call {
  std::string response_id;
  std::string input_id;
  conversation::tool_call call;
};

/// The next part of a call, for clients that asked for parts: the name with the first. The whole call follows before the
/// `response_done`.
struct response_tool_call_delta {
  std::string response_id;
  std::string input_id;
  conversation::tool_call part;
};

/// In audio and video, the conversation asks its client to call a function (docs/protocol.md 17): these three, in this order,
/// as upstream's next protocol has them. `unit`: the newest step, by its number.
struct duplex_call_begin {
  std::string call_id;
  std::uint64_t unit = 0;
  std::int64_t start_ms = 0; ///< of the turn that asks for it, in the session's sound
  std::int64_t end_ms = 0;
};
struct duplex_call_delta {
  std::string call_id;
  std::uint64_t unit = 0;
  std::string text; ///< of the call as the model writes it
};
struct duplex_call_done {
  conversation::tool_call call;
  std::uint64_t unit = 0;
  std::string text; ///< that of all deltas
  usage used{};     ///< what it took to find out; of several calls of a turn, the first has it
};

/// The result of a call is not wanted any more: nobody has sent it in time.
struct duplex_call_abort {
  std::string call_id;
  std::string_view reason; ///< a constant of the program
};

/// Ends a chat turn; in duplex with `protocol.duplex_response_done` (docs/protocol.md 12), or with
/// `config.unit_responses` a unit's answer.
struct response_done {
  std::string response_id;
  std::string input_id;
  std::string text;
  pcm audio;          ///< 24 kHz, for a turn without streaming; otherwise null
  std::string reason; ///< turn_end, length, cancelled, error; unit_end
  metrics measured;
  std::optional<usage> used;            ///< of this turn or unit
  std::string turn_id = {};             ///< as in `output_delta`
  std::vector<token_score> scores = {}; ///< those that no delta had; without deltas, all
};

/// The session will end soon (docs/protocol.md 8); at most once per reason.
struct session_go_away {
  std::string reason; ///< timeout, context_full, server_shutdown, server_restart
  std::int64_t time_left_ms = 0;
  std::optional<std::int64_t> retry_after_ms = {}; ///< when to come back (docs/protocol.md 14); current dialect
};

/// The last event before the close frame (docs/protocol.md 9).
struct session_closed {
  std::string reason; ///< in the words of the dialect
  std::optional<usage> total;
};

/// What the user said in one turn, or why it was not written down (docs/protocol.md 16). Times count the session's sound.
struct input_transcript {
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
  std::string text;
  std::string_view problem{}; ///< one of `transcript_result_words`; empty = none
};

/// docs/protocol.md 10; `message` is for humans.
struct error_event {
  error_code code;
  std::string message;
};

using server_event = std::variant<session_queued, session_queue_update, session_queue_done, session_created,
                                  session_resumed, output_delta, response_tool_call, response_tool_call_delta,
                                  duplex_call_begin, duplex_call_delta, duplex_call_done, duplex_call_abort,
                                  response_done, session_go_away, session_closed, input_transcript, error_event>;

} // namespace parley::protocol
