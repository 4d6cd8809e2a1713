#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace parley::tests {

/// What clients of OpenAI's Live API need of the server's events: their fields, their order and their pace, by the
/// tables of tests/support/openai_events.json. Throws std::runtime_error at the first event that breaks a rule. One per
/// connection.
class live_validator {
public:
  live_validator();

  /// `at_ms`: when it came, by any clock.
  void check(std::string_view frame, std::int64_t at_ms);

private:
  void check_order(const nlohmann::json& event, const std::string& type);
  void check_times(const nlohmann::json& event);
  void check_pace(const nlohmann::json& event, std::int64_t at_ms);

  const nlohmann::json rules_;
  std::set<std::string> event_ids_;
  bool started_ = false;
  bool closed_ = false;
  std::string id_;
  std::int64_t last_start_ms_ = 0;
  double bytes_per_ms_ = 48;
  double played_until_ms_ = 0;
};

} // namespace parley::tests
