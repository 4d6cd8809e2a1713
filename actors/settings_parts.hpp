#pragma once

#include "actors/queue/admission_queue.hpp"
#include "config/settings.hpp"
#include "protocol/limits.hpp"
#include "protocol/speech/voice_activity.hpp"
#include "protocol/speech/voice_map.hpp"

#include <chrono>
#include <memory>

// Converts the settings to what the pure classes need.
namespace parley::actors {

// Converts seconds to milliseconds. Silence and rejoin are of section `nodes`.
queue_settings queue_from(const config::settings& settings);
waiting_limits waiting_from(const config::settings& settings);
protocol::session_limits limits_from(const config::settings& settings);
/// What connections get that speak a dialect of OpenAI's.
struct openai_terms {
  std::chrono::milliseconds slot_wait{};
  std::chrono::milliseconds live_barge_in{};
  bool server_vad_is_duplex = false;
  bool duplex_tools = false;
  bool transcribes = false;
  protocol::speech::voice_detection detection = protocol::speech::voice_detection::silero;
  std::shared_ptr<const protocol::speech::voice_map> voices;
};

/// Reads the files of `openai.voices`. \throws config::settings_error
openai_terms openai_from(const config::settings& settings);
std::chrono::milliseconds silence_from(const config::settings& settings);
std::chrono::milliseconds rejoin_from(const config::settings& settings);

} // namespace parley::actors
