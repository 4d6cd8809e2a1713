#pragma once

#include "protocol/events.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The client's side of the wire: client events -> text frames (docs/protocol.md 3). Pure and thread-safe.
namespace parley::client {

/// session.init or session.update.
struct init_request {
  protocol::dialect spoken = protocol::dialect::current;
  std::optional<std::string> system_prompt{}; ///< required by the legacy dialect; if empty, a plain default is sent
  std::optional<int> force_listen_count{};    ///< current dialect only, like `greedy` and `seed`
  std::optional<int> max_speak_tokens{};      ///< of a spoken second
  bool greedy = false;
  std::optional<std::uint64_t> seed{};
  std::string_view voice{}; ///< bytes of a WAV file for LLM and vocoder; empty = none
  bool resume = false;      ///< ask to be able to come back (docs/protocol.md 14); current dialect only
};

/// input.append of a whole conversation in chat.
struct chat_request {
  std::string_view prompt{};
  std::vector<std::string> images{}; ///< contents of picture files, shown before the prompt
  std::vector<std::string> sounds{}; ///< contents of WAV files, played before the prompt
  std::optional<std::string> system{};
  std::optional<int> max_new_tokens{};
  bool greedy = false;
  std::optional<std::uint64_t> seed{};
  bool streaming = true;
  bool tts = false; ///< request a spoken answer
};

/// Returns one text frame, like all below.
std::string encode_init(const init_request& request);

/// `samples` at 16 kHz. `picture`: bytes of an image file, for video; empty = none.
std::string encode_append(protocol::dialect spoken, std::span<const float> samples, bool force_listen = false,
                          std::string_view picture = {});

std::string encode_chat(const chat_request& request);
std::string encode_close(std::string_view reason);

} // namespace parley::client
