#pragma once

#include "protocol/conformance/event_validator.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace parley::protocol::conformance {

/// What OpenAI's clients need of the server's events: their fields, and their order within a response and a turn.
class realtime_validator final : public event_validator {
public:
  void check(std::string_view frame, std::int64_t at_ms) override;

  /// Call when everything is quiet: nothing may be left half told.
  void check_quiet() const;

private:
  struct response {
    std::vector<std::string> steps; ///< types so far
    bool in_conversation = true;
    std::string item;
    std::string words; ///< of all deltas
  };

  void check_fields(const nlohmann::json& event);
  void check_item(const nlohmann::json& item);
  void check_response(const nlohmann::json& event, const std::string& type);
  void check_conversation(const nlohmann::json& event, const std::string& type);
  void check_turn(const nlohmann::json& event, const std::string& type);
  void check_output(const nlohmann::json& event, const std::string& type);
  void follow(response& of, const std::string& type);

  std::set<std::string> event_ids_;
  std::set<std::string> items_;
  std::map<std::string, response> responses_; ///< those not done yet
  bool calls_ = false;                        ///< it is a call, as its events tell
  std::string heard_;                         ///< the response whose sound a call hears
  std::string turn_item_;                     ///< of the turn being spoken
  std::string committed_item_;                ///< whose `conversation.item.added` is due
  std::string added_item_;                    ///< whose `conversation.item.done` is due
};

} // namespace parley::protocol::conformance
