#pragma once

#include "protocol/events.hpp"
#include "protocol/json/document.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace parley::protocol {

/// What a completion asks of the model, found in the body of its request. Numbers and switches are read; texts, pictures and
/// sound still stand in the body: `completion_turn` judges and decodes them when the session has its slot.
struct openai_prompt {
  explicit openai_prompt(std::string text) : body(std::move(text)), found(json::scan(body)) {}
  openai_prompt(const openai_prompt&) = delete;
  openai_prompt& operator=(const openai_prompt&) = delete;

  enum class part_kind : std::uint8_t { text, image, audio };
  struct part {
    part_kind kind = part_kind::text;
    json::value content; ///< a string
  };

  /// One message. What it says is nothing, one text, words that stand elsewhere in the message, or parts.
  struct said {
    role from = role::user;
    json::value calls;   ///< of functions, by an assistant; absent = none
    json::value call_id; ///< of a function's result; absent = none
    std::variant<std::monostate, json::value, std::string, std::vector<part>> content;
  };

  const std::string body;
  const json::document found; ///< the values in `body`, to which all below refer
  chat_append_event terms;    ///< without what stands below
  std::vector<said> messages;
  json::value stop, tools, tool_choice, format; ///< absent = not given
  bool holds_sound = false;
};

} // namespace parley::protocol
