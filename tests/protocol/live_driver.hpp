#pragma once

#include "protocol/conformance/live_validator.hpp"
#include "protocol/openai/live/machine.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace parley::tests {

/// A live machine with a clock of its own, a client whose every received event is validated, and what the inner
/// session was told, as frames.
class live_driver {
public:
  struct received {
    std::int64_t at_ms = 0; ///< of the driver's clock, from its beginning
    nlohmann::json event;
  };

  explicit live_driver(protocol::openai::live::machine_terms terms = {}, std::uint64_t seed = 1);

  // Each returns what the server sent meanwhile.
  std::vector<nlohmann::json> send(const nlohmann::json& event);
  std::vector<nlohmann::json> send_text(std::string_view frame);
  std::vector<nlohmann::json> start(nlohmann::json session = nlohmann::json::object());

  /// `start`, and the inner session is granted.
  void begin(nlohmann::json session = nlohmann::json::object());

  /// Appends PCM16 at 24 kHz, a tenth of a second at a time, at the pace of the clock.
  std::vector<nlohmann::json> hear(std::span<const float> samples);
  std::vector<nlohmann::json> wait(std::chrono::milliseconds time);
  std::vector<nlohmann::json> drain();

  // What the inner session does. `grant` makes it ready.
  std::vector<nlohmann::json> grant();
  std::vector<nlohmann::json> listens();
  std::vector<nlohmann::json> speaks(const std::string& response, const std::string& text, double seconds,
                                     bool end_of_turn = false);
  std::vector<nlohmann::json> chat_delta(const std::string& text, double seconds);
  std::vector<nlohmann::json> chat_done();
  std::vector<nlohmann::json> inner_error(protocol::error_code code);
  std::vector<nlohmann::json> inner_closes();
  std::vector<nlohmann::json> inner(const protocol::server_event& event);

  /// What is to be written down, and nobody has looked at; and the answer.
  std::vector<protocol::transcript_request> unwritten();
  std::vector<nlohmann::json> writes(protocol::transcript heard);

  /// What the statistics were told, as words that nobody has looked at.
  std::vector<std::string> notes();

  /// Of the user's turns, since the last call.
  std::vector<protocol::openai::turn_moment> moments() { return std::exchange(moments_, {}); }

  /// The kind of session that is open; none = there is none.
  std::optional<protocol::mode> open() const { return open_; }

  /// How many were opened, and how many of them dropped before they got their turn.
  int opened() const { return opened_; }
  int unused() const { return unused_; }

  /// Frames that it got and nobody has looked at, as JSON.
  std::vector<nlohmann::json> asked();

  /// The inner session's system prompt, from the frames that nobody has looked at.
  std::string prompt();

  std::optional<protocol::openai::end_client> ended() const { return ended_; }
  const std::vector<received>& seen() const { return seen_; }
  std::int64_t now_ms() const;

private:
  std::vector<nlohmann::json> carry_out(protocol::openai::effects effects);
  const std::chrono::steady_clock::time_point began_{std::chrono::hours(1)};
  std::chrono::steady_clock::time_point now_ = began_;
  protocol::openai::live::machine machine_;
  protocol::conformance::live_validator validator_;
  std::vector<received> seen_;
  std::optional<protocol::mode> open_;
  std::uint64_t number_ = 0;
  int opened_ = 0;
  int unused_ = 0;
  std::vector<nlohmann::json> asked_;
  std::vector<protocol::transcript_request> unwritten_;
  std::vector<std::string> notes_;
  std::vector<protocol::openai::turn_moment> moments_;
  std::optional<protocol::openai::end_client> ended_;
};

} // namespace parley::tests
