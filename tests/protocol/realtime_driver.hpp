#pragma once

#include "protocol/conformance/realtime_validator.hpp"
#include "protocol/openai/realtime/machine.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace parley::tests {

/// A realtime machine with a clock of its own, a client whose every received event is validated, and the frames that
/// the inner session got.
class realtime_driver {
public:
  explicit realtime_driver(bool served = true, std::uint64_t seed = 1,
                           protocol::openai::realtime::machine_terms terms = {}, bool call = false);

  /// The client sends an event; returns what the server sent at once.
  std::vector<nlohmann::json> send(const nlohmann::json& event);
  std::vector<nlohmann::json> send_text(std::string_view frame);

  /// `session.update` with this `session`.
  std::vector<nlohmann::json> update(nlohmann::json session);

  /// Appends PCM16 at 24 kHz, a tenth of a second at a time, at the pace of a clock.
  std::vector<nlohmann::json> hear(std::span<const float> samples);
  std::vector<nlohmann::json> wait(std::chrono::milliseconds time);

  /// In a call: the client's sound, at 24 kHz, as its packets bring it.
  std::vector<nlohmann::json> hear_call(std::span<const float> samples);

  /// Seconds of sound that were sent to a call, and how often what it had not heard yet was dropped.
  double played() const { return played_; }
  int dropped_sound() const { return dropped_; }

  // What the inner session does. `grant` makes it ready.
  std::vector<nlohmann::json> grant();
  std::vector<nlohmann::json> chat_delta(const std::string& text, double seconds = 0);
  std::vector<nlohmann::json> chat_done(const std::string& reason = "turn_end");
  std::vector<nlohmann::json> listens();
  std::vector<nlohmann::json> speaks(const std::string& response, const std::string& text, double seconds,
                                     bool end_of_turn = false);
  std::vector<nlohmann::json> inner(const protocol::server_event& event);
  std::vector<nlohmann::json> inner(const std::string& frame); ///< the event that it stands for
  std::vector<nlohmann::json> inner_closes();

  /// What is to be written down, and nobody has looked at; and the answer.
  std::vector<protocol::transcript_request> unwritten();
  std::vector<nlohmann::json> writes(protocol::transcript heard);

  /// What the statistics were told, as words that nobody has looked at.
  std::vector<std::string> notes();

  /// The kind of session that is open; none = there is none.
  std::optional<protocol::mode> open() const { return open_; }

  /// How many were opened, and how many of them dropped before they got their turn.
  int opened() const { return opened_; }
  int unused() const { return unused_; }

  /// Frames that it got and nobody has looked at, as JSON.
  std::vector<nlohmann::json> asked();
  std::optional<protocol::openai::end_client> ended() const { return ended_; }
  const std::vector<nlohmann::json>& events() const { return events_; } ///< all that the server sent
  const protocol::conformance::realtime_validator& seen() const { return seen_; }
  const protocol::openai::realtime::machine& machine() const { return machine_; }

private:
  std::vector<nlohmann::json> carry_out(protocol::openai::effects effects);

  std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
  protocol::openai::realtime::machine machine_;
  protocol::conformance::realtime_validator seen_;
  std::vector<nlohmann::json> events_;
  std::optional<protocol::mode> open_;
  std::uint64_t number_ = 0;
  double played_ = 0;
  int dropped_ = 0;
  int opened_ = 0;
  int unused_ = 0;
  std::vector<nlohmann::json> asked_;
  std::vector<protocol::transcript_request> unwritten_;
  std::vector<std::string> notes_;
  std::optional<protocol::openai::end_client> ended_;
  std::vector<nlohmann::json> first_;
};

/// The types of events.
std::vector<std::string> types(const std::vector<nlohmann::json>& events);

/// The last event of a type; null if there is none.
nlohmann::json last(const std::vector<nlohmann::json>& events, const std::string& type);

/// A loud tone, and silence, at 24 kHz.
std::vector<float> tone(double seconds, float amplitude = 0.3f);
std::vector<float> quiet(double seconds);

} // namespace parley::tests
