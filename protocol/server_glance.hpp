#pragma once

#include "protocol/client_side.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace parley::protocol {

/// What a load generator counts of a server event of either dialect: read in one pass, without a DOM and without
/// decoding its sound. Members that the event does not have keep their defaults.
struct server_glance {
  server_event_type type = server_event_type::other;
  bool text = false;             ///< it has some
  std::size_t audio_samples = 0; ///< 24 kHz
  bool answers_unit = false;     ///< the last event of a step (PROTOCOL.md 6.2)
  bool end_of_turn = false;
  std::int64_t input = 0;         ///< ordinal of the append that is answered, 1-based; 0 in the legacy dialect
  std::int64_t dropped_units = 0; ///< so far
  std::string reason;             ///< of response.done and session.closed
  std::string error_code;
};

/// None when the frame is no JSON object with a `type`.
std::optional<server_glance> glance(std::string_view frame);

} // namespace parley::protocol
