#pragma once

#include "protocol/conformance/event_validator.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace parley::protocol::conformance {

/// What clients of OpenAI's Live API need of the server's events: their fields, their order and their pace.
class live_validator final : public event_validator {
public:
  explicit live_validator(std::int64_t most_ahead_ms = frame_ms);

  void check(std::string_view frame, std::int64_t at_ms) override;

private:
  void check_order(const nlohmann::json& event, const std::string& type);
  void check_times(const nlohmann::json& event);
  void check_pace(const nlohmann::json& event, std::int64_t at_ms);

  const nlohmann::json& rules_;
  const double most_ahead_ms_;
  std::set<std::string> event_ids_;
  bool started_ = false;
  bool closed_ = false;
  std::string id_;
  std::int64_t last_start_ms_ = 0;
  double bytes_per_ms_ = 48;
  double played_until_ms_ = 0;
};

} // namespace parley::protocol::conformance
