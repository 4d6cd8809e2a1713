#pragma once

#include "protocol/errors.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// The vocabulary of the wire: what clients say and what the server answers, the same for both dialects (PROTOCOL.md
// sections 3 and 4).
namespace parley::protocol {

/// Fixed by the first accepted initialising event (PROTOCOL.md 2).
enum class dialect : std::uint8_t { undecided, current, legacy };

/// `?mode=` (PROTOCOL.md 1).
enum class mode : std::uint8_t { chat, audio, video };

/// Mono float32 samples, decoded once and shared from then on. 16 kHz in, 24 kHz out.
using pcm = std::shared_ptr<const std::vector<float>>;

/// An image file as the client sent it, base64 removed.
using image_file = std::shared_ptr<const std::string>;

/// `config.sliding_window_mode` (PROTOCOL.md 6.10).
enum class window_mode : std::uint8_t { off, basic, context };

/// `config` of session.init with its defaults (PROTOCOL.md 3.1).
struct duplex_config {
  double length_penalty = 1.1;
  int force_listen_count = 3;
  int max_new_speak_tokens_per_chunk = 20;
  double temperature = 0.7;
  int top_k = 20;
  double top_p = 0.8;
  bool greedy = false; ///< `decode_mode`
  double text_repetition_penalty = 1.05;
  int text_repetition_window_size = 512;
  double listen_prob_scale = 1.0;
  std::optional<int> listen_top_k;
  double tts_temperature = 0.8;
  bool generate_audio = true;
  std::optional<window_mode> sliding_window_mode;
  std::optional<int> basic_window_high_tokens; ///< the basic window slides above this,
  std::optional<int> basic_window_low_tokens;  ///< down to this
  std::optional<std::uint64_t> seed;
  bool unit_responses = false;     ///< ours: each unit's answer is a response of its own (docs/PROTOCOL_EXTENSIONS.md)
  bool listen_at_turn_end = false; ///< ours: a turn's last second ends with a `listen`
};

// ---- client events ----------------------------------------------------------------------------------------------------

/// session.init and session.update (PROTOCOL.md 3.1, 3.2).
struct init_event {
  dialect spoken = dialect::current;
  std::string system_prompt; ///< the default is filled in, except in chat
  bool has_system_prompt = false;
  duplex_config config;
  int max_slice_nums = 1;
  pcm voice;     ///< reference voice for the LLM, 16 kHz; null = none
  pcm tts_voice; ///< reference voice for the vocoder, fallback to `voice` applied; null = the server's default
  std::optional<bool> turn_based; ///< `payload.mode`; read only when the URL names no mode
  bool resume = false;            ///< the client may come back after its connection was lost
};

/// input.append in video and audio, input_audio_buffer.append (PROTOCOL.md 3.3, 3.4).
struct append_event {
  pcm samples;                    ///< 16 kHz, 1 … 160 000
  std::vector<image_file> frames; ///< at most 4; none in audio
  bool force_listen = false;
  std::optional<int> max_slice_nums; ///< none = the session's
  std::string input_id;              ///< the client's own name for it; empty = it gave none
};

// `input.messages` of a chat (PROTOCOL.md 3.5).
enum class role : std::uint8_t { system, user, assistant };
struct text_item {
  std::string text;
};
struct audio_item {
  pcm samples; ///< 16 kHz
};
struct image_item {
  image_file file;
};
struct video_item {
  std::vector<image_file> frames;
  pcm samples; ///< 16 kHz, may be null
  int stack_frames = 1;
};
using content_item = std::variant<text_item, audio_item, image_item, video_item>;
struct message {
  role from = role::user;
  std::vector<content_item> content;
};

/// input.append in chat (PROTOCOL.md 3.5).
struct chat_append_event {
  std::vector<message> messages;
  bool streaming = true;
  int max_new_tokens = 256;
  double length_penalty = 1.1;
  std::optional<double> temperature;
  std::optional<int> top_k;
  std::optional<double> top_p;
  std::optional<bool> do_sample;
  std::optional<std::uint64_t> seed;
  std::optional<int> max_slice_nums;
  bool omni_mode = false;
  bool use_tts_template = false; ///< implied by `tts`
  bool enable_thinking = false;
  bool tts = false;
  pcm tts_voice;        ///< 16 kHz; null = the server's default
  std::string input_id; ///< as of `append_event`
};

/// session.close (PROTOCOL.md 3.6).
struct close_event {
  std::string reason; ///< as sent if it is `^[a-z0-9_]{1,64}$`, else "user_stop"
};

// ---- what server events carry -------------------------------------------------------------------------------------------

/// PROTOCOL.md 4.2; totals are sums and not stored.
struct usage {
  std::int64_t input_text = 0;
  std::int64_t input_audio = 0;
  std::int64_t input_vision = 0;
  std::int64_t output_text = 0;
  std::int64_t output_audio = 0;

  usage& operator+=(const usage& other) {
    input_text += other.input_text;
    input_audio += other.input_audio;
    input_vision += other.input_vision;
    output_text += other.output_text;
    output_audio += other.output_audio;
    return *this;
  }
  friend bool operator==(const usage&, const usage&) = default;
};

/// PROTOCOL.md 4.1: absent keys are not sent. Times in milliseconds.
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

// ---- server events ----------------------------------------------------------------------------------------------------

/// Where a client stands in the queue (PROTOCOL.md 7).
struct queue_place {
  int position = 1; ///< 1 = next
  double estimated_wait_s = 0;
  std::string ticket_id;
  int queue_length = 1; ///< waiting now, this one included
};
struct session_queued {
  queue_place place;
};
struct session_queue_update {
  queue_place place;
};
struct session_queue_done {};

/// The session is ACTIVE.
struct session_created {
  std::optional<int> prompt_length; ///< tokens of the prefilled prompt
  bool turn_based = false;
  metrics measured;
  usage total;
  std::optional<std::string> recording_id;
  std::optional<std::string> resume_token; ///< the session outlives its connection
  double resume_seconds = 0;               ///< by that long (docs/PROTOCOL_EXTENSIONS.md)
};

/// The first word on a connection that goes on with a session (docs/PROTOCOL_EXTENSIONS.md).
struct session_resumed {
  std::string resume_token; ///< the next one
  std::uint64_t inputs = 0; ///< append events taken so far
  std::uint64_t resent = 0; ///< events that follow and were sent before
};

/// `kind` of response.output.delta.
enum class output_kind : std::uint8_t { listen, text, audio };

/// One delta. The legacy dialect joins a step's text and audio deltas into one event.
struct output_delta {
  output_kind kind = output_kind::listen;
  std::string text;
  pcm audio; ///< 24 kHz
  std::string response_id;
  std::string input_id;
  std::optional<std::int64_t> chunk_index; ///< on a step's first delta, with both usages
  std::optional<usage> chunk_usage;
  std::optional<usage> total;
  bool end_of_turn = false;
  metrics measured;
  std::string turn_id;      ///< with `config.unit_responses`; else empty and not sent
  bool closes_turn = false; ///< the `listen` of `config.listen_at_turn_end`: the metrics are those of the delta before
};

/// A chat turn is over; in duplex with `protocol.duplex_response_done` (PROTOCOL.md 12), or a unit's answer with
/// `config.unit_responses`.
struct response_done {
  std::string response_id;
  std::string input_id;
  std::string text;
  pcm audio;          ///< 24 kHz, of a turn without streaming; else null
  std::string reason; ///< turn_end, length, cancelled, error; unit_end
  metrics measured;
  std::optional<usage> used; ///< this turn's, or this unit's
  std::string turn_id = {};  ///< as of `output_delta`
};

/// The session ends soon (PROTOCOL.md 8); at most once per reason.
struct session_go_away {
  std::string reason; ///< timeout, context_full, server_shutdown
  std::int64_t time_left_ms = 0;
};

/// The last event before the close frame (PROTOCOL.md 9).
struct session_closed {
  std::string reason; ///< in the dialect's own words
  std::optional<usage> total;
};

/// PROTOCOL.md 10; `message` is for people.
struct error_event {
  error_code code;
  std::string message;
};

using server_event =
    std::variant<session_queued, session_queue_update, session_queue_done, session_created, session_resumed,
                 output_delta, response_done, session_go_away, session_closed, error_event>;

} // namespace parley::protocol
