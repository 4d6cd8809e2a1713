#include "config/keys.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <limits>

namespace parley::config {

namespace {

template<class T>
struct named {
  T meaning;
  std::string_view word;
};

constexpr std::array<named<dtype>, 4> words_of(dtype) {
  return {{{dtype::automatic, "auto"},
           {dtype::float32, "float32"},
           {dtype::bfloat16, "bfloat16"},
           {dtype::float16, "float16"}}};
}
constexpr std::array<named<speech_dtype>, 2> words_of(speech_dtype) {
  return {{{speech_dtype::float32, "float32"}, {speech_dtype::mixed, "mixed"}}};
}
constexpr std::array<named<quantization>, 3> words_of(quantization) {
  return {{{quantization::none, "none"}, {quantization::int8, "int8"}, {quantization::int4, "int4"}}};
}
constexpr std::array<named<window_mode>, 3> words_of(window_mode) {
  return {{{window_mode::off, "off"}, {window_mode::basic, "basic"}, {window_mode::context, "context"}}};
}
constexpr std::array<named<log_format>, 2> words_of(log_format) {
  return {{{log_format::text, "text"}, {log_format::json, "json"}}};
}
constexpr std::array<named<tls_mode>, 3> words_of(tls_mode) {
  return {{{tls_mode::off, "off"}, {tls_mode::automatic, "auto"}, {tls_mode::file, "file"}}};
}

constexpr std::array<named<voice_activity>, 2> words_of(voice_activity) {
  return {{{voice_activity::silero, "silero"}, {voice_activity::loudness, "loudness"}}};
}
constexpr std::array<named<openai_door>, 3> words_of(openai_door) {
  return {{{openai_door::automatic, "auto"}, {openai_door::explicitly, "explicit"}, {openai_door::off, "off"}}};
}
constexpr std::array<named<vad_answers>, 2> words_of(vad_answers) {
  return {{{vad_answers::turn, "turn"}, {vad_answers::duplex, "duplex"}}};
}
constexpr std::array<named<transcription>, 2> words_of(transcription) {
  return {{{transcription::off, "off"}, {transcription::chat, "chat"}}};
}

bool is_device(const std::string& text) {
  if (text == "auto" || text == "cpu" || text == "cuda") return true;
  const std::string_view prefix = "cuda:";
  if (!text.starts_with(prefix) || text.size() == prefix.size() || text.size() > prefix.size() + 3) return false;
  return text.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

bool is_device_list(const std::string& text) {
  if (text == "cuda:all") return true;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    if (!is_device(text.substr(begin, end - begin))) return false;
  }
  return true;
}

bool is_level(const std::string& text) {
  static constexpr std::string_view levels[] = {"trace", "debug", "info", "warn", "error", "off"};
  return std::find(std::begin(levels), std::end(levels), text) != std::end(levels);
}

bool is_level_or_empty(const std::string& text) {
  return text.empty() || is_level(text);
}

bool is_not_empty(const std::string& text) {
  return !text.empty();
}

bool is_http_url_or_empty(const std::string& text) {
  return text.empty() || text.starts_with("http://") || text.starts_with("https://");
}

constexpr double day = 86400;
constexpr double mebibyte = 1 << 20;

#define PARLEY_MEMBER(path) [](settings& s) -> field { return &s.path; }

const std::array table{
    key{"server.host", PARLEY_MEMBER(server.host), "Address to listen on: a name or an address, IPv6 without brackets.",
        0, 0, is_not_empty, "a host name or address"},
    key{"server.port", PARLEY_MEMBER(server.port), "0 = any free port; the ready line names it.", 0, 65535},
    key{"server.io_threads", PARLEY_MEMBER(server.io_threads),
        "Threads that read and write sockets and do what small messages ask for. One is enough for a thousand "
        "sessions.",
        1, 256},
    key{"server.names", PARLEY_MEMBER(server.names),
        "Names under which browsers reach this server, separated by spaces, without ports. Without API keys, its page "
        "works only under these, server.host, localhost and IP addresses: any other name might be an attacker's, "
        "pointed at this server (DNS rebinding)."},
    key{"server.trusted_proxies", PARLEY_MEMBER(server.trusted_proxies),
        "Addresses and networks (10.0.0.0/8) of proxies in front of this server, separated by spaces. Of what comes "
        "from "
        "them, limits and logs see the client that X-Forwarded-For names: the last address in it that is none of "
        "these. "
        "Anybody can write that header, so name only proxies that set it, or add to it."},

    key{"tls.mode", PARLEY_MEMBER(tls.mode),
        "off (plain text), auto (a self-signed certificate for localhost, server.host and server.names, made at the "
        "first "
        "start and again when it has expired or lacks a name) or "
        "file (tls.cert and tls.key). Browsers give the microphone to https and to localhost only."},
    key{"tls.cert", PARLEY_MEMBER(tls.cert),
        "Certificate chain, PEM. With auto, where it is stored; empty = parley/tls.pem in the user's state folder."},
    key{"tls.key", PARLEY_MEMBER(tls.key),
        "Its private key, PEM. With auto, empty = parley/tls.key in the user's state folder."},

    key{"auth.keys_file", PARLEY_MEMBER(auth.keys_file),
        "API keys, one per line: NAME HASH [admin] [LIMIT=NUMBER]..., where HASH is the SHA-256 of the key in "
        "hexadecimal; "
        "# begins a comment. What a key may use is limited by minutes_per_day, minutes_per_month, tokens_per_day, "
        "tokens_per_month, sessions and starts_per_minute. Empty = no key is needed."},
    key{"auth.ephemeral_secret_file", PARLEY_MEMBER(auth.ephemeral_secret_file),
        "File with the secret that ephemeral keys are made with (POST /v1/realtime/client_secrets): 32 random bytes or "
        "more. Gateways that share it accept each other's. Empty = keys are good for the process that made them."},
    key{"auth.allowed_origins", PARLEY_MEMBER(auth.allowed_origins),
        "Pages that may open a session from a browser, separated by spaces: \"same\" (pages of this host, whatever the "
        "port; see server.names), \"*\" (all), or origins like https://example.org. Clients that send no Origin are "
        "not browsers and are always allowed."},
    key{"auth.reload_seconds", PARLEY_MEMBER(auth.reload_seconds),
        "How often to look whether auth.keys_file or a certificate has changed, and to read all of them again if so, "
        "as "
        "SIGHUP does: for secrets that something else mounts and renews. 0 = never.",
        0, day},

    key{"worker.model", PARLEY_MEMBER(worker.model), "Checkpoint folder. Empty = the embedded default model."},
    key{"worker.assets", PARLEY_MEMBER(worker.assets),
        "Folder whose assets (the voice's networks and recordings) are used if the checkpoint has none, as in "
        "quantized releases. Empty = the checkpoint folder."},
    key{"worker.device", PARLEY_MEMBER(worker.device),
        "auto (the first GPU for a model with a hidden size of 1024 or more, if this build and machine have one; else "
        "the CPU), cpu, cuda (the first GPU) or cuda:N. With several, as in cuda:0,cuda:1, or with cuda:all, parley "
        "serve "
        "starts a worker process for each.",
        0, 0, is_device_list, "auto, cpu, cuda, cuda:N, cuda:all or a list of devices"},
    key{"worker.max_sessions", PARLEY_MEMBER(worker.max_sessions),
        "Slots: sessions that the worker takes at a time. 0 = from memory and measured speed, which goes on being "
        "measured while sessions run, so that the number changes; another number is used as it is.",
        0, 10000},
    key{"worker.threads", PARLEY_MEMBER(worker.threads),
        "Intra-op threads of the engine. 0 = all cores, or one for a small model.", 0, 1024},

    key{"queue.capacity", PARLEY_MEMBER(queue.capacity),
        "Waiting clients; the next one gets queue_full. 0 = no queue: no free slot means worker_busy.", 0, 1e6},
    key{"queue.no_worker_seconds", PARLEY_MEMBER(queue.no_worker_seconds),
        "How long waiting clients stay after the last worker has gone, before service_unavailable.", 0, day},
    key{"queue.base_chat_seconds", PARLEY_MEMBER(queue.base_chat_seconds),
        "Expected length of a session, for the estimated wait, until three of its kind were measured.", 0.001, day},
    key{"queue.base_audio_seconds", PARLEY_MEMBER(queue.base_audio_seconds), "", 0.001, day},
    key{"queue.base_video_seconds", PARLEY_MEMBER(queue.base_video_seconds), "", 0.001, day},

    key{"limits.audio_seconds", PARLEY_MEMBER(limits.audio_seconds),
        "Total duration of a session, from the accepted connection on: waiting in the queue and pauses count.", 0.001,
        day},
    key{"limits.video_seconds", PARLEY_MEMBER(limits.video_seconds), "", 0.001, day},
    key{"limits.chat_seconds", PARLEY_MEMBER(limits.chat_seconds), "", 0.001, day},
    key{"limits.chat_idle_seconds", PARLEY_MEMBER(limits.chat_idle_seconds),
        "A chat session that is idle for this long is closed.", 0.001, day},
    key{"limits.chat_turn_seconds", PARLEY_MEMBER(limits.chat_turn_seconds),
        "Time limit of one chat turn; then inference_error.", 0.001, day},
    key{"limits.init_seconds", PARLEY_MEMBER(limits.init_seconds),
        "Time from session.queue_done to the initialising event; then the session is closed.", 0.001, day},
    key{"limits.backlog_units", PARLEY_MEMBER(limits.backlog_units),
        "Seconds of sound that may wait behind the running one; the oldest are dropped and counted.", 1, 10000},
    key{"limits.failover_units", PARLEY_MEMBER(limits.failover_units),
        "The same while a session has no worker, even before the loss is noticed.", 1, 10000},
    key{"limits.failover_seconds", PARLEY_MEMBER(limits.failover_seconds),
        "How long a session that lost its worker waits for another one. 0 = it ends at once.", 0, day},
    key{"limits.journal_bytes", PARLEY_MEMBER(limits.journal_bytes),
        "What a gateway keeps of one session in memory, so that another worker can take it over; a minute of 16-bit "
        "sound takes 2 MB. A session that needs more ends with its worker.",
        0, 4096 * mebibyte},
    key{"limits.min_legacy_samples", PARLEY_MEMBER(limits.min_legacy_samples),
        "Shortest append in the legacy dialect, in samples at 16 kHz.", 1, 160000},
    key{"limits.drain_seconds", PARLEY_MEMBER(limits.drain_seconds),
        "On shutdown, how long running sessions may go on after session.go_away.", 0, day},
    key{"limits.resume_seconds", PARLEY_MEMBER(limits.resume_seconds),
        "How long a session whose client asked for it (payload.resume) waits for that client after losing its "
        "connection. 0 = never.",
        0, day},
    key{"limits.resume_bytes", PARLEY_MEMBER(limits.resume_bytes),
        "How much of the last events of such a session is kept, to be sent again; a second of sound takes 0.13 MB.",
        4096, 4096 * mebibyte},
    key{"limits.delegations", PARLEY_MEMBER(limits.delegations),
        "Calls of functions that a conversation in audio or video may have under way; each turn of its user is judged "
        "in a slot "
        "that is idle. 0 = functions are called in chat only.",
        0, 64},
    key{"limits.delegation_seconds", PARLEY_MEMBER(limits.delegation_seconds),
        "How long such a call waits for its result; then the model is told that there is none.", 0.001, day},
    key{"limits.outbox_bytes", PARLEY_MEMBER(limits.outbox_bytes),
        "Unsent bytes of one connection; a client that reads too slowly is closed with 1008.", 4096, 4096 * mebibyte},
    key{"limits.duplex_message_bytes", PARLEY_MEMBER(limits.duplex_message_bytes),
        "Largest message of a client in audio and video; larger ones close with 1009.", 4096, 4096 * mebibyte},
    key{"limits.chat_message_bytes", PARLEY_MEMBER(limits.chat_message_bytes),
        "Largest message in chat, and the largest body of POST /v1/chat/completions.", 4096, 4096 * mebibyte},
    key{"limits.header_bytes", PARLEY_MEMBER(limits.header_bytes), "HTTP request line and headers; above, 431.", 1024,
        mebibyte},
    key{"limits.body_bytes", PARLEY_MEMBER(limits.body_bytes), "Body of any other HTTP request; above, 413.", 1024,
        1024 * mebibyte},
    key{"limits.received_bytes", PARLEY_MEMBER(limits.received_bytes),
        "Messages and bodies above 192 KiB that are being received or wait for their session, all together, and those "
        "of one API key, or of one address without a key; above, close 1013 and 503.",
        mebibyte, 65536 * mebibyte},
    key{"limits.received_bytes_per_client", PARLEY_MEMBER(limits.received_bytes_per_client), "", mebibyte,
        65536 * mebibyte},
    key{"limits.waiting_bytes", PARLEY_MEMBER(limits.waiting_bytes),
        "Smaller messages that wait for their session, and frames that wait for their reader, beyond 192 KiB of each "
        "connection: all together, and those of one API key, or of one address without a key; above, close 1013 and "
        "1008.",
        mebibyte, 1'048'576 * mebibyte},
    key{"limits.waiting_bytes_per_client", PARLEY_MEMBER(limits.waiting_bytes_per_client), "", mebibyte,
        1'048'576 * mebibyte},
    key{"limits.kept_bytes", PARLEY_MEMBER(limits.kept_bytes),
        "Sound, pictures and long texts that conversations in OpenAI's dialects hold, and what sessions begin with "
        "that wait for a slot: all together, and those of one API key, or of one address without a key; above, "
        "rate_limit_exceeded, and close 1013.",
        mebibyte, 1'048'576 * mebibyte},
    key{"limits.kept_bytes_per_client", PARLEY_MEMBER(limits.kept_bytes_per_client), "", mebibyte,
        1'048'576 * mebibyte},
    key{"limits.answer_bytes", PARLEY_MEMBER(limits.answer_bytes),
        "HTTP answers that wait in memory for their readers, all together, and those of one API key, or of one address "
        "without a key; above, 503. Short ones and the page do not count, a recording counts with the piece at hand.",
        mebibyte, 65536 * mebibyte},
    key{"limits.answer_bytes_per_client", PARLEY_MEMBER(limits.answer_bytes_per_client), "", mebibyte,
        65536 * mebibyte},
    key{"limits.read_ahead_bytes", PARLEY_MEMBER(limits.read_ahead_bytes),
        "How far a connection reads ahead of its session, in bytes and in messages; then it stops reading. One message "
        "may exceed the bytes.",
        4096, 4096 * mebibyte},
    key{"limits.read_ahead_frames", PARLEY_MEMBER(limits.read_ahead_frames), "", 1, 10000},
    key{"limits.connections", PARLEY_MEMBER(limits.connections),
        "Open sockets. For a further one, the oldest without a session is closed, of the address that has most of "
        "those.",
        1, 1e6},
    key{"limits.handshake_seconds", PARLEY_MEMBER(limits.handshake_seconds),
        "Time limit for one HTTP request, its answer, and the upgrade.", 0.001, 3600},
    key{"limits.keep_alive_seconds", PARLEY_MEMBER(limits.keep_alive_seconds), "Time limit between two HTTP requests.",
        0.001, 3600},
    key{"limits.ping_seconds", PARLEY_MEMBER(limits.ping_seconds), "Ping interval, and time limit for a pong.", 0.001,
        3600},
    key{"limits.close_seconds", PARLEY_MEMBER(limits.close_seconds),
        "Time limit for the last frames and the closing handshake of a connection.", 0.001, 3600},
    key{"limits.sessions_per_address", PARLEY_MEMBER(limits.sessions_per_address),
        "Open sessions per client address and per API key; more are refused with 429. 0 = no limit. Behind a proxy, "
        "all clients have the proxy's address, unless server.trusted_proxies names it.",
        0, 1e6},
    key{"limits.sessions_per_key", PARLEY_MEMBER(limits.sessions_per_key), "", 0, 1e6},
    key{"limits.starts_per_address", PARLEY_MEMBER(limits.starts_per_address),
        "New sessions per minute of one address and of one key; more are refused with 429. 0 = no limit.", 0, 1e6},
    key{"limits.starts_per_key", PARLEY_MEMBER(limits.starts_per_key), "", 0, 1e6},
    key{"limits.waiting_per_address", PARLEY_MEMBER(limits.waiting_per_address),
        "Places in the queue of one address and of one key; the next one gets queue_full. 0 = no limit.", 0, 1e6},
    key{"limits.waiting_per_key", PARLEY_MEMBER(limits.waiting_per_key), "", 0, 1e6},

    key{"protocol.legacy_extras", PARLEY_MEMBER(protocol.legacy_extras),
        "Adds metrics and usage to the events of the legacy dialect."},
    key{"protocol.duplex_response_done", PARLEY_MEMBER(protocol.duplex_response_done),
        "Sends response.done in audio and video too, for clients of other servers."},

    key{"openai.realtime", PARLEY_MEMBER(openai.realtime),
        "Which connections speak OpenAI's Realtime and Live APIs (docs/openai.md): auto, explicit (only those that say "
        "so, by path, subprotocol, header or ?dialect=) or off."},
    key{"openai.server_vad", PARLEY_MEMBER(openai.server_vad),
        "What answers clients that ask for server_vad: turn (chat, once the server has found the end of a turn) or "
        "duplex (as with semantic_vad: the model decides)."},
    key{"openai.slot_wait_seconds", PARLEY_MEMBER(openai.slot_wait_seconds),
        "How long an answer waits for a slot. Connections are refused while the expected wait is longer. Some clients "
        "give up after ten seconds.",
        0.1, 3600},
    key{"openai.transcribe", PARLEY_MEMBER(openai.transcribe),
        "What users say, written down for clients that ask for it: off, or chat (the model itself does it, in slots "
        "that nobody else wants). The embedded model cannot."},
    key{"openai.voices", PARLEY_MEMBER(openai.voices),
        "Reference voices by the names that clients use: NAME=FILE, separated by spaces, each a sound file (WAV, MP3, "
        "FLAC, Ogg or AIFF) of 0.25 to 60 s. Other names have the default voice."},
    key{"openai.voice_activity", PARLEY_MEMBER(openai.voice_activity),
        "How OpenAI's dialects tell speech from noise: silero (a small network) or loudness (cheaper, in quiet "
        "rooms)."},
    key{"openai.duplex_tools", PARLEY_MEMBER(openai.duplex_tools),
        "With semantic_vad and functions, a Realtime session is full duplex too, and the conversation calls them as it "
        "goes on. "
        "Otherwise chat answers the user's turns."},
    key{"openai.live_barge_in_ms", PARLEY_MEMBER(openai.live_barge_in_ms),
        "In OpenAI's Live API, how much speech of the user stops the model. 0 = the model alone decides.", 0, 10000},

    key{"webrtc.enabled", PARLEY_MEMBER(webrtc.enabled),
        "Calls over WebRTC (POST /v1/realtime/calls), if the program was built with them. Off = 501."},
    key{"webrtc.port", PARLEY_MEMBER(webrtc.port),
        "UDP port of all calls. 0 = the number of server.port. Calls are reached at server.host.", 0, 65535},
    key{"webrtc.public_addresses", PARLEY_MEMBER(webrtc.public_addresses),
        "IP addresses at which clients reach this port, separated by spaces: they are told these and no others. For a "
        "server behind "
        "NAT, or in a container whose port is published under the same number. Empty = the addresses of its own "
        "interfaces."},

    key{"engine.seed", PARLEY_MEMBER(engine.seed),
        "Seed of sessions without their own: a whole number, or \"none\" = random."},
    key{"engine.dtype", PARLEY_MEMBER(engine.precision),
        "Number format of weights and activations: auto (bfloat16 on a GPU for a model with a hidden size of 1024 or "
        "more, else float32), float32, bfloat16 or float16."},
    key{"engine.quant", PARLEY_MEMBER(engine.quant),
        "The language model's layers in fewer bits, for machines with less memory: none, int8 (CPU only) "
        "or int4."},
    key{"engine.speech_dtype", PARLEY_MEMBER(engine.speech),
        "Number format of the networks that speak: float32, or mixed (on the CPU the speech-token model's layers in "
        "int8, and in bfloat16 the large products of the networks that make sound of its tokens, if the processor has "
        "such; on a GPU the speech-token model's layers and the flow's estimator in bfloat16, with what they "
        "remember)."},
    key{"engine.window", PARLEY_MEMBER(engine.window),
        "How the KV cache slides when it is full: off (the session ends with context_full), basic or context."},
    key{"engine.allow_client_window", PARLEY_MEMBER(engine.allow_client_window),
        "Whether a session may choose its own sliding_window_mode."},
    key{"engine.reference_quirks", PARLEY_MEMBER(engine.reference_quirks),
        "Repeats defects of the reference that Parley otherwise corrects; for comparisons."},
    key{"engine.context_tokens", PARLEY_MEMBER(engine.context_tokens), "Limit of a session's KV cache.", 256, 1 << 20},

    key{"nodes.host", PARLEY_MEMBER(nodes.host), "Address of a gateway at which workers join.", 0, 0, is_not_empty,
        "a host name or address"},
    key{"nodes.port", PARLEY_MEMBER(nodes.port), "0 = any free port; the log names it.", 0, 65535},
    key{"nodes.join", PARLEY_MEMBER(nodes.join),
        "HOST:PORT of the gateway that a worker joins; several, separated by spaces, share it."},
    key{"nodes.peers", PARLEY_MEMBER(nodes.peers),
        "HOST:PORT of other gateways' nodes.port, separated by spaces: the first that answers keeps copies of this "
        "gateway's sessions, whose clients may then go on there. Needs journal.dir."},
    key{"nodes.name", PARLEY_MEMBER(nodes.name), "Name of a node. Empty = the machine's name."},
    key{"nodes.cert", PARLEY_MEMBER(nodes.cert),
        "Certificate of this node, PEM, its key, and the authority that signed those of all nodes. Anybody with a "
        "certificate of that authority is let in. Empty = plain text, on loopback only."},
    key{"nodes.key", PARLEY_MEMBER(nodes.key), ""},
    key{"nodes.ca", PARLEY_MEMBER(nodes.ca), ""},
    key{"nodes.silence_seconds", PARLEY_MEMBER(nodes.silence_seconds),
        "A node that is silent for this long counts as dead. Must be equal on all nodes.", 0.5, 3600},
    key{"nodes.rejoin_seconds", PARLEY_MEMBER(nodes.rejoin_seconds),
        "Longest pause of a worker between two attempts to reach its gateway.", 0.1, 3600},

    key{"voice.default", PARLEY_MEMBER(voice.default_wav),
        "WAV of the default voice. Empty = the model's own: assets/default_voice.wav, HT_ref_audio.wav or "
        "system_ref_audio.wav."},

    key{"record.dir", PARLEY_MEMBER(record.dir),
        "Folder for recordings of sessions: the sound of both sides, pictures, and every event. Empty = nothing is "
        "recorded."},
    key{"record.keep_days", PARLEY_MEMBER(record.keep_days),
        "How long recordings are kept, and how many bytes of them; the oldest are deleted first. 0 = no limit.", 0,
        36500},
    key{"record.keep_bytes", PARLEY_MEMBER(record.keep_bytes), "", 0, 1e6 * 1024 * mebibyte},
    key{"record.queue_bytes", PARLEY_MEMBER(record.queue_bytes),
        "How much may wait for the disk; further events are not recorded, and are counted.", 4096, 65536 * mebibyte},

    key{"journal.dir", PARLEY_MEMBER(journal.dir),
        "Folder of this process alone, for a log of each session whose client can resume (payload.resume): another "
        "process that starts with the same folder goes on with them. Empty = sessions end with the process."},
    key{"journal.sync", PARLEY_MEMBER(journal.sync),
        "Waits after each write until the disk has it, so that a power failure loses nothing either."},
    key{"journal.queue_bytes", PARLEY_MEMBER(journal.queue_bytes),
        "How much may wait for the disk; a session with more to write is no longer kept, and is counted.", 4096,
        65536 * mebibyte},
    key{"journal.copy_bytes", PARLEY_MEMBER(journal.copy_bytes),
        "How much is kept here for gateways that name this one in nodes.peers; one of them has at most half of it. "
        "What is "
        "more is refused.",
        0, 1e6 * 1024 * mebibyte},

    key{"log.level", PARLEY_MEMBER(log.level), "trace, debug, info, warn, error or off.", 0, 0, is_level,
        "trace, debug, info, warn, error or off"},
    key{"log.net_level", PARLEY_MEMBER(log.net_level),
        "The same for one part of the server: sockets and HTTP, sessions and queue, the engine. Empty = as log.level. "
        "The engine's trace shows what was drawn for each second, and how close it was.",
        0, 0, is_level_or_empty, "trace, debug, info, warn, error or off"},
    key{"log.actors_level", PARLEY_MEMBER(log.actors_level), "", 0, 0, is_level_or_empty,
        "trace, debug, info, warn, error or off"},
    key{"log.engine_level", PARLEY_MEMBER(log.engine_level), "", 0, 0, is_level_or_empty,
        "trace, debug, info, warn, error or off"},
    key{"log.format", PARLEY_MEMBER(log.format), "text or json (one object per line)."},

    key{"tracing.endpoint", PARLEY_MEMBER(tracing.endpoint),
        "Where traces are sent (OpenTelemetry, OTLP/HTTP in JSON), such as http://localhost:4318/v1/traces. Empty = "
        "nowhere.",
        0, 0, is_http_url_or_empty, "an http:// or https:// URL"},
    key{"tracing.sample", PARLEY_MEMBER(tracing.sample),
        "The share of traces that are sent. Clients that send a traceparent decide for theirs.", 0, 1},
    key{"tracing.headers_file", PARLEY_MEMBER(tracing.headers_file),
        "File with headers for the collector, such as a key: NAME: VALUE, one per line."},
};

#undef PARLEY_MEMBER

std::string number(double n) {
  std::array<char, 352> digits; // the longest numbers are the smallest: 5e-324 has 326 characters
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), n, std::chars_format::fixed).ptr;
  return {digits.data(), end};
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      constexpr std::string_view hex = "0123456789ABCDEF";
      out += "\\u00";
      out += hex[static_cast<unsigned char>(c) >> 4];
      out += hex[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// Assigns a value, depending on the member's type; returns the complaint, if any.
class assignment {
public:
  assignment(const key& which, const value& given) : which_(which), given_(given) {}

  std::optional<std::string> operator()(bool* to) const {
    const auto* flag = std::get_if<bool>(&given_);
    if (!flag) return "must be true or false";
    *to = *flag;
    return {};
  }

  template<class Int>
  requires std::integral<Int> std::optional<std::string>
  operator()(Int* to) const {
    const auto* n = std::get_if<std::int64_t>(&given_);
    if (!n || static_cast<double>(*n) < which_.low || static_cast<double>(*n) > which_.high)
      return "must be a whole number from " + number(which_.low) + " to " + number(which_.high);
    *to = static_cast<Int>(*n);
    return {};
  }

  std::optional<std::string> operator()(double* to) const {
    double n = std::numeric_limits<double>::quiet_NaN();
    if (const auto* real = std::get_if<double>(&given_)) n = *real;
    if (const auto* whole = std::get_if<std::int64_t>(&given_)) n = static_cast<double>(*whole);
    if (!(n >= which_.low && n <= which_.high))
      return "must be a number from " + number(which_.low) + " to " + number(which_.high);
    *to = n;
    return {};
  }

  std::optional<std::string> operator()(std::string* to) const {
    const auto* text = std::get_if<std::string>(&given_);
    if (!text || (which_.allowed && !which_.allowed(*text)))
      return "must be " + std::string(which_.allowed ? which_.allowed_words : "a text");
    *to = *text;
    return {};
  }

  std::optional<std::string> operator()(std::optional<std::uint64_t>* to) const {
    if (const auto* n = std::get_if<std::int64_t>(&given_); n && *n >= 0) {
      *to = static_cast<std::uint64_t>(*n);
      return {};
    }
    if (const auto* text = std::get_if<std::string>(&given_); text && *text == "none") {
      to->reset();
      return {};
    }
    return "must be a whole number from 0 to 9223372036854775807, or \"none\"";
  }

  template<class Enum>
  requires std::is_enum_v<Enum> std::optional<std::string>
  operator()(Enum* to) const {
    std::string all;
    const auto* text = std::get_if<std::string>(&given_);
    for (const auto& [meaning, word] : words_of(Enum{})) {
      if (text && *text == word) {
        *to = meaning;
        return {};
      }
      all += all.empty() ? "" : ", ";
      all += word;
    }
    return "must be one of " + all;
  }

private:
  const key& which_;
  const value& given_;
};

struct printer {
  std::string operator()(const bool* from) const { return *from ? "true" : "false"; }
  template<class Int>
  requires std::integral<Int> std::string operator()(const Int* from) const { return std::to_string(*from); }
  std::string operator()(const double* from) const { return number(*from); }
  std::string operator()(const std::string* from) const { return quoted(*from); }
  std::string operator()(const std::optional<std::uint64_t>* from) const {
    return *from ? std::to_string(**from) : quoted("none");
  }
  template<class Enum>
  requires std::is_enum_v<Enum> std::string operator()(const Enum* from) const {
    for (const auto& [meaning, word] : words_of(Enum{}))
      if (meaning == *from) return quoted(word);
    return quoted("");
  }
};

} // namespace

std::span<const key> keys() {
  return table;
}

const key* find_key(std::string_view name) {
  const auto it = std::find_if(table.begin(), table.end(), [&](const key& k) { return k.name == name; });
  return it == table.end() ? nullptr : &*it;
}

std::optional<std::string> assign(settings& target, const key& which, const value& given) {
  return std::visit(assignment(which, given), which.member(target));
}

std::string to_toml(const settings& source, const key& which) {
  // The table has one accessor for both reading and writing; nothing is written here.
  return std::visit(printer{}, which.member(const_cast<settings&>(source)));
}

} // namespace parley::config
