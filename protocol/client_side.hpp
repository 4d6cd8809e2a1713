#pragma once

#include "protocol/events.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The wire as a client sees it: client events -> text frames, and text frames -> what a probe or a load generator wants
// to know of a server event (PROTOCOL.md 3 and 4). Pure and thread-safe.
namespace parley::protocol {

/// session.init or session.update.
struct init_request {
  dialect spoken = dialect::current;
  std::optional<std::string> system_prompt{}; ///< the legacy dialect needs one; without it a plain one is sent
  std::optional<int> force_listen_count{};    ///< current dialect only, as `greedy` and `seed`
  bool greedy = false;
  std::optional<std::uint64_t> seed{};
  std::string_view voice{}; ///< bytes of a WAV file for LLM and vocoder; empty = none
};

/// input.append of a whole conversation in chat.
struct chat_request {
  std::string_view prompt{};
  std::vector<std::string> images{}; ///< bytes of picture files, shown before the prompt,
  std::vector<std::string> sounds{}; ///< and of WAV files, played before it
  std::optional<std::string> system{};
  std::optional<int> max_new_tokens{};
  bool greedy = false;
  std::optional<std::uint64_t> seed{};
  bool streaming = true;
  bool tts = false; ///< the answer is to be spoken
};

/// One text frame, as all below.
std::string encode_init(const init_request& request);

/// `samples` at 16 kHz. `picture`: bytes of an image file, for video; empty = none.
std::string encode_append(dialect spoken, std::span<const float> samples, bool force_listen = false,
                          std::string_view picture = {});
std::string encode_chat(const chat_request& request);
std::string encode_close(std::string_view reason);

/// What an event means, whatever the dialect calls it (PROTOCOL.md 2 and 4).
enum class server_event_type : std::uint8_t {
  queued,
  queue_update,
  queue_done,
  created,
  listen,
  spoken, ///< text, audio or both
  response_done,
  go_away,
  closed,
  error,
  other,
};

/// By the name that the event has on the wire.
server_event_type server_event_type_of(std::string_view name);

/// A server event of either dialect. Members that the event does not have keep their defaults.
struct server_message {
  server_event_type type = server_event_type::other;
  std::string type_name;
  std::string session_id;
  std::string text;
  std::vector<float> audio;  ///< 24 kHz; empty as well when what came is no sound
  bool answers_unit = false; ///< the last event of a step: the unit is answered (PROTOCOL.md 6.2)
  bool end_of_turn = false;
  std::int64_t input = 0; ///< ordinal of the append that completed the unit, 1-based; 0 in the legacy dialect
  std::optional<int> kv_cache_length;
  std::optional<int> prompt_length;
  std::int64_t dropped_units = 0; ///< so far
  int position = 0;
  int queue_length = 0;
  double estimated_wait_s = 0;
  std::int64_t time_left_ms = 0;
  std::string reason;
  std::string error_code;
  std::string error_message;
};

/// None when the frame is no JSON object with a `type`.
std::optional<server_message> read_server_message(std::string_view frame);

} // namespace parley::protocol
