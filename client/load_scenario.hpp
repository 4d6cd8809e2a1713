#pragma once

#include "client/listener.hpp"
#include "protocol/events.hpp"

#include <chrono>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace parley::client {

/// How the simulated people behave. Times in seconds.
struct load_habits {
  bool fast = false;    ///< send the next second as soon as the previous one is answered, instead of one per second
  double jitter = 0.02; ///< a second is sent at most this much too early or too late
  double think = 2;     ///< mean time between an answer and the next question, in chat
  double pause = 1.5;   ///< mean silence between two recordings
  double barge_in = 0;  ///< probability that a speaking second is interrupted by force_listen
  double listening = 0; ///< share of the seconds that tell the model to listen, in stretches
  int speak_tokens = 0; ///< most tokens of a spoken second; 0 = the server's default; current dialect
  bool tts = true;      ///< request spoken answers in chat
  bool resume = true;   ///< come back when the connection breaks; current dialect
  double playback_lead = usual_playback_lead; ///< how much a listener buffers before a turn begins to play
};

/// One simulated person.
struct load_scenario {
  protocol::mode mode = protocol::mode::audio;
  protocol::dialect spoken = protocol::dialect::current;
  double start = 0; ///< when to connect
  std::uint64_t seed = 0;
};

/// Who connects when: `sessions` people with the modes assigned in turn, spread evenly over `ramp` seconds. With
/// `mixed_dialects`, half of those in audio and video use the legacy dialect. The same arguments give the same people.
std::vector<load_scenario> cast_roles(int sessions, std::span<const protocol::mode> modes, bool mixed_dialects,
                                      double ramp, std::uint64_t seed);

/// The seconds of speech that a person can say: recordings cut into numbered units, then one of silence.
struct load_script {
  std::vector<std::size_t> recordings; ///< units in each recording, in order
  std::size_t silent_unit() const;
};

/// Decides which unit is said when: recordings in random order with silence between them, and when exactly each second
/// is due. The same seed gives the same choices. Script and habits must outlive it.
class load_pace {
public:
  load_pace(const load_script& script, const load_habits& habits, std::uint64_t seed);

  /// The unit to say next.
  std::size_t next_unit();

  /// When piece `number` is due if one is sent every `step` seconds, counted in seconds from the first one; never before
  /// the previous one.
  double due(std::size_t number, double step = 1);

  /// Seconds between an answer and the next question.
  double thinking_time();

  /// Whether a speaking second is interrupted.
  bool interrupts();

  /// Whether the next second tells the model to listen: in turns, so that it listens and may speak for ten seconds
  /// together on average.
  bool tells_to_listen();

  /// The silence is over: the next unit begins a recording.
  void speak_up() { silent_left_ = 0; }

private:
  double uniform();

  const load_script* script_;
  const load_habits* habits_;
  std::mt19937_64 chance_;
  std::size_t unit_ = 0, left_ = 0, silent_left_ = 0;
  bool begun_ = false, listening_ = false; ///< whether a second was asked for; whether the latest one tells to listen
};

} // namespace parley::client
