#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

// Strict readings of what a server of OpenAI's dialects sends: for tests and the load generator. The server itself does
// not contain them.
namespace parley::protocol::conformance {

/// Checks the server's events of one connection, in order.
class event_validator {
public:
  virtual ~event_validator() = default;

  /// Throws std::exception at an event that breaks a rule; from then on its verdicts mean nothing. `at_ms`: when it
  /// came, by any clock.
  virtual void check(std::string_view frame, std::int64_t at_ms) = 0;
};

/// The length of a frame of sound in the Live API.
inline constexpr std::int64_t frame_ms = 200;

/// The Realtime API (GA).
std::unique_ptr<event_validator> make_realtime_validator();

/// The Live API. Sound may be this much ahead of the clock: a frame, and as much as the network may delay one.
std::unique_ptr<event_validator> make_live_validator(std::int64_t most_ahead_ms = frame_ms);

} // namespace parley::protocol::conformance
