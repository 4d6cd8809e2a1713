#pragma once

#include "conversation/duplex_options.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace parley::config {

using conversation::window_mode;

/// Number format of weights and activations; automatic = bfloat16 for a large model on a GPU, else float32.
enum class dtype { automatic, float32, bfloat16, float16 };

/// Number format of the talker's networks. mixed: on the CPU matrices in 8 bits and products in bfloat16 where that saves
/// time, on a GPU bfloat16 (`engine.speech_dtype`).
enum class speech_dtype { float32, mixed };

/// Number format of the language model's matrices; none = the same as `dtype`.
enum class quantization { none, int8, int4 };

/// The format of a log line: for humans, or one JSON object.
enum class log_format { text, json };

/// The source of the server's certificate: none (plain text), made by the server itself, or files.
enum class tls_mode { off, automatic, file };

/// Which connections speak a dialect of OpenAI's: those that look like it, those that say so, or none.
enum class openai_door { automatic, explicitly, off };

/// What tells speech from noise in OpenAI's dialects.
enum class voice_activity { silero, loudness };

/// What answers turns that the server finds (`server_vad`): chat, or a full-duplex session.
enum class vad_answers { turn, duplex };

/// How what a user says is written down: not at all, or by the model in chat turns in the background.
enum class transcription { off, chat };

/// Every setting of Parley with its default: one struct per section of `config/parley.toml`, one member per key. That
/// file documents them (config/keys.hpp).
struct settings {
  struct {
    std::string host = "127.0.0.1";
    std::uint16_t port = 8006; ///< 0 = any free port
    int io_threads = 1;
    std::string names;           ///< other host names of the server, separated by spaces
    std::string trusted_proxies; ///< addresses and networks, separated by spaces
  } server;

  struct {
    tls_mode mode = tls_mode::off;
    std::string cert; ///< PEM, including the chain
    std::string key;
  } tls;

  struct {
    std::string keys_file;             ///< empty = no key is needed
    std::string ephemeral_secret_file; ///< empty = a secret of this process
    std::string allowed_origins = "same";
    double reload_seconds = 0; ///< 0 = only SIGHUP does
  } auth;

  struct {
    std::string model;           ///< checkpoint folder; empty = the embedded default
    std::string assets;          ///< folder whose `assets` are used; empty = the checkpoint folder
    std::string device = "auto"; ///< "auto", "cpu", "cuda", "cuda:N", "cuda:all" or a list
    int max_sessions = 0;        ///< slots; 0 = derived from memory and measured speed
    int threads = 0;             ///< intra-op threads of the engine; 0 = derived from the cores
  } worker;

  struct {
    int capacity = 1000; ///< waiting clients; 0 = no queue
    double no_worker_seconds = 10;
    double base_chat_seconds = 15; ///< expected session lengths until three have been measured
    double base_audio_seconds = 120;
    double base_video_seconds = 90;
  } queue;

  struct {
    double audio_seconds = 600;
    double video_seconds = 300;
    double chat_seconds = 1800;
    double chat_idle_seconds = 60;
    double chat_turn_seconds = 120;
    double init_seconds = 30;
    int backlog_units = 2;
    int failover_units = 60;
    double failover_seconds = 30;
    std::size_t journal_bytes = 64u << 20; ///< for one session
    int min_legacy_samples = 4000;
    double drain_seconds = 30;
    double resume_seconds = 30;
    std::size_t resume_bytes = 4u << 20; ///< for one session
    int delegations = 4;                 ///< calls of functions under way in a full-duplex session
    double delegation_seconds = 30;
    std::size_t outbox_bytes = 8u << 20;
    std::size_t duplex_message_bytes = 32u << 20;
    std::size_t chat_message_bytes = 128u << 20;
    std::size_t header_bytes = 16u << 10;
    std::size_t body_bytes = 64u << 10;
    std::size_t received_bytes = 1u << 30; ///< of large messages and bodies that nobody has taken yet
    std::size_t received_bytes_per_client = 256u << 20;
    std::size_t waiting_bytes = std::size_t{2} << 30; ///< of small messages and frames that wait
    std::size_t waiting_bytes_per_client = 512u << 20;
    std::size_t kept_bytes = std::size_t{4} << 30; ///< of conversations in OpenAI's dialects
    std::size_t kept_bytes_per_client = 512u << 20;
    std::size_t answer_bytes = 64u << 20; ///< of HTTP answers that wait for their readers
    std::size_t answer_bytes_per_client = 16u << 20;
    std::size_t read_ahead_bytes = 4u << 20; ///< passed to the session but not yet taken
    int read_ahead_frames = 16;
    int connections = 10000;
    double handshake_seconds = 10;
    double keep_alive_seconds = 30;
    double ping_seconds = 20; ///< ping interval, and the time limit for a pong
    double close_seconds = 10;
    int sessions_per_address = 0; ///< here and below: 0 = no limit
    int sessions_per_key = 0;
    int starts_per_address = 0; ///< new sessions per minute
    int starts_per_key = 0;
    int waiting_per_address = 0; ///< places in the queue
    int waiting_per_key = 0;
  } limits;

  struct {
    bool legacy_extras = false;
    bool duplex_response_done = false;
  } protocol;

  struct {
    openai_door realtime = openai_door::automatic;
    vad_answers server_vad = vad_answers::turn;
    double slot_wait_seconds = 8;
    transcription transcribe = transcription::off;
    std::string voices; ///< NAME=FILE, separated by spaces
    int live_barge_in_ms = 600;
    bool duplex_tools = false;
    config::voice_activity voice_activity = config::voice_activity::silero;
  } openai;

  struct {
    bool enabled = true;
    int port = 0;                 ///< UDP; 0 = the number of server.port
    std::string public_addresses; ///< separated by spaces
  } webrtc;

  struct {
    std::optional<std::uint64_t> seed;  ///< none = random
    dtype precision = dtype::automatic; ///< key `engine.dtype`
    quantization quant = quantization::none;
    speech_dtype speech = speech_dtype::float32; ///< key `engine.speech_dtype`
    window_mode window = window_mode::off;
    bool allow_client_window = true;
    bool reference_quirks = false;
    int context_tokens = 8192;
  } engine;

  struct {
    std::string host = "127.0.0.1"; ///< for a gateway: where workers join
    std::uint16_t port = 8007;      ///< 0 = any free port
    std::string join;               ///< for a worker: HOST:PORT of its gateway
    std::string peers;              ///< for a gateway: HOST:PORT of others
    std::string name;               ///< empty = the machine's name
    std::string cert;               ///< PEM; empty = plain text, on loopback only
    std::string key;
    std::string ca;
    double silence_seconds = 5;
    double rejoin_seconds = 5;
    std::string secret; ///< no key: what a process gives the workers that it starts; empty = none
  } nodes;

  struct {
    std::string default_wav; ///< key `voice.default`; empty = the model's own
  } voice;

  struct {
    std::string dir; ///< empty = nothing is recorded
    double keep_days = 30;
    std::size_t keep_bytes = std::size_t{20} << 30;
    std::size_t queue_bytes = 64u << 20;
  } record;

  struct {
    std::string dir;   ///< empty = sessions end with the process
    bool sync = false; ///< fdatasync after each write
    std::size_t queue_bytes = 128u << 20;
    std::size_t copy_bytes = std::size_t{16} << 30; ///< of other gateways' logs
  } journal;

  struct {
    std::string level = "info";
    std::string net_level; ///< here and below: empty = the same as `level`
    std::string actors_level;
    std::string engine_level;
    log_format format = log_format::text;
  } log;

  struct {
    std::string endpoint; ///< URL; empty = off
    double sample = 1;
    std::string headers_file;
  } tracing;
};

} // namespace parley::config
