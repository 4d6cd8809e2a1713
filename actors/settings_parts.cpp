#include "actors/settings_parts.hpp"

#include "base/read_file.hpp"
#include "config/load.hpp"
#include "protocol/media/base64.hpp"
#include "protocol/media/pcm.hpp"
#include "protocol/media/voice.hpp"

#include <span>
#include <sstream>
#include <string>
#include <utility>

namespace parley::actors {

namespace {

std::chrono::milliseconds span_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
}

/// The voice in a file of sound as it goes to sessions.
protocol::pcm read_voice(const std::string& file) {
  const auto bytes = base::read_file(file);
  if (!bytes) throw config::settings_error("openai.voices: " + file + " cannot be read");
  std::string text;
  protocol::base64::append(std::as_bytes(std::span(*bytes)), text);
  const auto samples = protocol::decode_sound(text, protocol::voice_seconds, file);
  if (!samples) throw config::settings_error("openai.voices: " + samples.error().message);
  return protocol::clamped(*samples);
}

} // namespace

queue_settings queue_from(const config::settings& settings) {
  const auto& from = settings.queue;
  queue_settings to;
  to.capacity = static_cast<std::size_t>(from.capacity);
  to.no_worker = span_of(from.no_worker_seconds);
  to.base_chat_s = from.base_chat_seconds;
  to.base_audio_s = from.base_audio_seconds;
  to.base_video_s = from.base_video_seconds;
  return to;
}

waiting_limits waiting_from(const config::settings& settings) {
  return {static_cast<std::size_t>(settings.limits.waiting_per_address),
          static_cast<std::size_t>(settings.limits.waiting_per_key)};
}

protocol::session_limits limits_from(const config::settings& settings) {
  const auto& from = settings.limits;
  protocol::session_limits to;
  to.audio = span_of(from.audio_seconds);
  to.video = span_of(from.video_seconds);
  to.chat = span_of(from.chat_seconds);
  to.chat_idle = span_of(from.chat_idle_seconds);
  to.chat_turn = span_of(from.chat_turn_seconds);
  to.init = span_of(from.init_seconds);
  to.failover = span_of(from.failover_seconds);
  to.drain = span_of(from.drain_seconds);
  to.resume = span_of(from.resume_seconds);
  to.delegations = static_cast<std::size_t>(from.delegations);
  to.delegation = span_of(from.delegation_seconds);
  to.transcribes = settings.openai.transcribe == config::transcription::chat;
  to.backlog_units = static_cast<std::size_t>(from.backlog_units);
  to.failover_units = static_cast<std::size_t>(from.failover_units);
  to.min_legacy_samples = static_cast<std::size_t>(from.min_legacy_samples);
  to.context_tokens = settings.engine.context_tokens;
  to.window = settings.engine.window;
  to.allow_client_window = settings.engine.allow_client_window;
  to.duplex_response_done = settings.protocol.duplex_response_done;
  return to;
}

openai_terms openai_from(const config::settings& settings) {
  const auto& from = settings.openai;
  openai_terms to;
  to.slot_wait = span_of(from.slot_wait_seconds);
  to.live_barge_in = std::chrono::milliseconds(from.live_barge_in_ms);
  to.server_vad_is_duplex = from.server_vad == config::vad_answers::duplex;
  to.duplex_tools = from.duplex_tools;
  to.transcribes = from.transcribe == config::transcription::chat;
  to.detection = from.voice_activity == config::voice_activity::silero ? protocol::speech::voice_detection::silero
                                                                       : protocol::speech::voice_detection::loudness;
  protocol::speech::voice_map voices;
  std::istringstream words(from.voices);
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals == 0 || equals == word.npos)
      throw config::settings_error("openai.voices: must be NAME=FILE, separated by spaces");
    voices[word.substr(0, equals)] = read_voice(word.substr(equals + 1));
  }
  if (!voices.empty()) to.voices = std::make_shared<const protocol::speech::voice_map>(std::move(voices));
  return to;
}

std::chrono::milliseconds silence_from(const config::settings& settings) {
  return span_of(settings.nodes.silence_seconds);
}

std::chrono::milliseconds rejoin_from(const config::settings& settings) {
  return span_of(settings.nodes.rejoin_seconds);
}

} // namespace parley::actors
