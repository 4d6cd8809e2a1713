#include "actors/settings_parts.hpp"

namespace parley::actors {

namespace {

std::chrono::milliseconds span_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
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
  to.backlog_units = static_cast<std::size_t>(from.backlog_units);
  to.failover_units = static_cast<std::size_t>(from.failover_units);
  to.min_legacy_samples = static_cast<std::size_t>(from.min_legacy_samples);
  to.context_tokens = settings.engine.context_tokens;
  to.window = settings.engine.window;
  to.allow_client_window = settings.engine.allow_client_window;
  to.duplex_response_done = settings.protocol.duplex_response_done;
  return to;
}

std::chrono::milliseconds silence_from(const config::settings& settings) {
  return span_of(settings.nodes.silence_seconds);
}

std::chrono::milliseconds rejoin_from(const config::settings& settings) {
  return span_of(settings.nodes.rejoin_seconds);
}

} // namespace parley::actors
