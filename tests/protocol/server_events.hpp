#pragma once

#include "protocol/codec/server_glance.hpp"
#include "protocol/events.hpp"
#include "protocol/media/pcm.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace parley::tests {

/// The event that such a frame stands for, as far as guests heed it; none = they do not.
inline std::optional<protocol::server_event> event_in(std::string_view frame) {
  using type = protocol::server_event_type;
  auto read = protocol::read_server_message(frame);
  if (!read) return std::nullopt;
  switch (read->type) {
  case type::created: {
    protocol::session_created out;
    out.measured.kv_cache_length = read->kv_cache_length;
    return out;
  }
  case type::listen:
  case type::spoken: {
    protocol::output_delta out;
    out.kind = read->type == type::listen ? protocol::output_kind::listen
               : read->audio.empty()      ? protocol::output_kind::text
                                          : protocol::output_kind::audio;
    out.text = read->text;
    if (!read->audio.empty()) out.audio = protocol::clamped(std::move(read->audio));
    out.response_id = read->response_id;
    out.end_of_turn = read->end_of_turn;
    if (read->answers_unit) out.measured.wall_clock_ms = 1;
    out.measured.kv_cache_length = read->kv_cache_length;
    out.chunk_usage = read->used;
    return out;
  }
  case type::tool_call: return protocol::response_tool_call{read->response_id, {}, read->call};
  case type::tool_call_delta: return protocol::response_tool_call_delta{read->response_id, {}, read->call};
  case type::response_done: {
    protocol::response_done out;
    out.response_id = read->response_id;
    out.text = read->text;
    if (!read->audio.empty()) out.audio = protocol::clamped(std::move(read->audio));
    out.reason = read->reason;
    out.used = read->used;
    return out;
  }
  case type::closed: return protocol::session_closed{read->reason, std::nullopt};
  case type::error: {
    protocol::error_event out{protocol::error_code::inference_error, read->error_message};
    for (std::size_t i = 0; i < protocol::error_table.size(); ++i)
      if (protocol::error_table[i].wire == read->error_code) out.code = static_cast<protocol::error_code>(i);
    return out;
  }
  default: return std::nullopt;
  }
}

} // namespace parley::tests
